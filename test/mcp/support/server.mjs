/**
 * An MCP server that a test controls, built from the protocol's server classes. `stdio` uses the standard streams; `http`
 * listens on a free port, or on PORT, and sends the port to its parent.
 */
import { randomUUID } from "node:crypto"
import { createServer } from "node:http"
import { Server } from "@modelcontextprotocol/sdk/server/index.js"
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js"
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import {
  CallToolRequestSchema,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  ResultSchema
} from "@modelcontextprotocol/sdk/types.js"

const text = (words) => ({ content: [{ type: "text", text: words }] })
const described = (name, description, inputSchema = { type: "object" }, rest = {}) => ({
  name,
  description,
  inputSchema,
  ...rest
})

const make = () => {
  const server = new Server(
    { name: "test", version: "1" },
    { capabilities: { tools: { listChanged: true }, resources: {} } }
  )
  const tools = new Map(
    [
      described("pid", "The process"),
      described("wait", "Waits until it is cancelled"),
      described("cancelled", "Waits until a call was cancelled"),
      described("refuse", "Answers with an error of the protocol"),
      described("fail", "Answers with an error of the tool"),
      described("contents", "Answers with every kind of content"),
      described("long", "Answers with a long text"),
      described("large", "Answers with a large recording"),
      described("pictures", "Answers with the pictures that it is given"),
      described("vast", "Answers with more than a message may have"),
      described("echo", "Says its input", { type: "object", properties: { said: { type: "string" } } }),
      described("change", "Changes the tools", { type: "object", properties: { tools: { type: "array" } } }),
      described("ask", "Asks the client for something"),
      described("die", "Ends the server"),
      described("with.dots", "Has a name that providers refuse"),
      described("a".repeat(80), "Has a long name"),
      described("wordy", "x".repeat(10_000)),
      described("choices", "Has a choice at the root", {
        type: "object",
        properties: { id: { type: "string" } },
        oneOf: [{ properties: { path: { type: "string" } }, required: ["path"] }, { required: ["id"] }]
      }),
      described("bulky", "Has a large schema", { type: "object", description: "x".repeat(40_000) }),
      described("task", "Can only be a task", { type: "object" }, { execution: { taskSupport: "required" } })
    ].map((tool) => [tool.name, tool])
  )
  let sawCancel
  const wasCancelled = new Promise((resolve) => (sawCancel = resolve))

  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const all = [...tools.values()]
    const from = Number(params?.cursor ?? 0)
    if (process.argv[3] === "endless") {
      const page = Array.from({ length: 30 }, (_, at) => described(`tool_${from + at}`, "One of many"))
      return { tools: page, nextCursor: String(from + 30) }
    }
    const next = from + 5 < all.length ? { nextCursor: String(from + 5) } : {}
    return { tools: all.slice(from, from + 5), ...next }
  })
  server.setRequestHandler(ListResourcesRequestSchema, () => ({
    resources: [
      { uri: "test://text", name: "text", mimeType: "text/plain", description: "Some\ntext" },
      { uri: "test://long", name: "long" }
    ]
  }))
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    if (uri === "test://text") {
      return {
        contents: [
          { uri, mimeType: "text/plain", text: "one" },
          { uri, mimeType: "image/png", blob: "aGVsbG8=" }
        ]
      }
    }
    if (uri === "test://long")
      return {
        contents: [
          { uri, text: "é".repeat(200_000) },
          { uri, text: "more" }
        ]
      }
    throw new McpError(-32002, "there is no such resource")
  })
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { arguments: input = {}, name, _meta } }, extra) => {
    switch (name) {
      case "pid":
        return text(String(process.pid))
      case "wait":
        await extra.sendNotification({
          method: "notifications/progress",
          params: { progressToken: _meta?.progressToken ?? 0, progress: 1, total: 3, message: "begun" }
        })
        await new Promise((resolve) => extra.signal.addEventListener("abort", resolve))
        sawCancel()
        return text("too late")
      case "cancelled":
        await wasCancelled
        return text("a call was cancelled")
      case "refuse":
        throw new McpError(-32602, `refused with ${process.env["SECRET"] ?? extra.requestInfo?.headers["x-secret"]}`)
      case "fail":
        return { ...text("the tool's own words"), isError: true }
      case "contents":
        return {
          content: [
            { type: "text", text: "words" },
            { type: "image", data: "aGVsbG8=", mimeType: "image/png" },
            { type: "audio", data: "aGVsbG8", mimeType: "Audio/WAV" },
            { type: "image", data: "", mimeType: "no mime" },
            { type: "resource", resource: { uri: "test://a", text: "inside" } },
            { type: "resource", resource: { uri: "test://b", blob: "aGVsbG8=", mimeType: "application/zip" } },
            { type: "resource_link", uri: "test://c", name: "link", mimeType: "text/plain" }
          ]
        }
      case "long":
        return text("a line\n".repeat(20_000))
      case "vast":
        return text("A".repeat(11 * 1024 * 1024))
      case "large":
        return { content: [{ type: "audio", data: "A".repeat(7_000_000), mimeType: "audio/wav" }] }
      case "pictures":
        return { content: input.pictures.map((picture) => ({ type: "image", ...picture })) }
      case "change":
        for (const gone of input.remove ?? []) tools.delete(gone)
        for (const added of input.add ?? []) tools.set(added.name, { inputSchema: { type: "object" }, ...added })
        await server.sendToolListChanged()
        return text("changed")
      case "ask":
        return text(
          await server.request({ method: input.method, params: {} }, ResultSchema).then(
            () => "answered",
            ({ code }) => `refused with ${code}`
          )
        )
      case "die":
        process.stderr.write(`going away with ${process.env["SECRET"]}\n`, () => process.exit(1))
        return new Promise(() => {})
      default:
        return text(`${name}: ${JSON.stringify(input)}`)
    }
  })
  return server
}

if (process.argv[3] === "noisy") process.stdout.write("starting ...\n{}\n[1\n")
if (process.argv[2] === "stdio") await make().connect(new StdioServerTransport())
else {
  const sessions = new Map()
  // `plain` and `rude` offer no stream, answer with JSON, and forget their sessions on request.
  const rude = process.argv[3] === "rude"
  const plain = process.argv[3] === "plain" || rude
  process.on("message", () => {
    sessions.clear()
    process.send("forgotten")
  })
  const http = createServer(async (request, response) => {
    if (plain && request.method === "GET") {
      response.writeHead(405).end()
      return
    }
    const id = request.headers["mcp-session-id"]
    if (id !== undefined && !sessions.has(id)) {
      // The status of the protocol, or that of many servers.
      response.writeHead(rude ? 400 : 404).end(rude ? "Bad Request: No valid session ID provided" : "")
      return
    }
    let transport = sessions.get(id)
    if (transport === undefined) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        enableJsonResponse: plain,
        onsessioninitialized: (session) => void sessions.set(session, transport)
      })
      await make().connect(transport)
    }
    await transport.handleRequest(request, response)
  })
  http.listen(Number(process.env["PORT"] ?? 0), "127.0.0.1", () => process.send(http.address().port))
}
