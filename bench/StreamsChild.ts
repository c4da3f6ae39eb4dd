/**
 * The floor of the figures of streams, in a process of its own: a bare `node:http` server that asks the model server, parses its
 * frames, writes each delta to its reader, and keeps the answer with one FULL insert. It prints its port.
 */
import { createServer, request as ask } from "node:http"
import type { AddressInfo } from "node:net"
import Sqlite from "better-sqlite3"

const [filename = "", modelPort = ""] = process.argv.slice(2)
const modelServer = `http://127.0.0.1:${modelPort}/v1`
const db = new Sqlite(filename)
db.pragma("journal_mode = WAL")
db.pragma("synchronous = FULL")
db.exec("CREATE TABLE answer (text TEXT NOT NULL)")
const insert = db.prepare("INSERT INTO answer VALUES (?)")
const server = createServer((request, response) => {
  request.resume()
  response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders()
  const body = JSON.stringify({ stream: true, messages: [{ role: "user", content: "Go on." }] })
  const headers = { "content-type": "application/json", "content-length": body.length }
  const sent = ask(`${modelServer}/chat/completions`, { method: "POST", headers }, (answer) => {
    let [rest, text] = ["", ""]
    answer.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n")
      rest = lines.pop() ?? ""
      for (const line of lines) {
        if (!line.startsWith("data: {")) continue
        const delta: unknown = JSON.parse(line.slice(6)).choices[0].delta.content
        if (typeof delta !== "string") continue
        text += delta
        response.write(`event: live\ndata: ${JSON.stringify({ live: { data: { delta } } })}\n\n`)
      }
    })
    answer.on("end", () => {
      insert.run(text)
      response.end(`event: event\ndata: ${JSON.stringify({ type: "session.next.text.ended", data: { text } })}\n\n`)
    })
  })
  sent.end(body)
})
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
