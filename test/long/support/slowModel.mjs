// A model server with OpenAI's protocol. It answers `count to N` with N words, one each 100 ms. Node runs it in a container.
import { createServer } from "node:http"
import { setTimeout } from "node:timers/promises"

createServer(async (request, response) => {
  if (request.method === "GET") return void response.writeHead(404).end()
  let body = ""
  for await (const part of request.setEncoding("utf8")) body += part
  const last = Number([...body.matchAll(/count to (\d+)/g)].at(-1)?.[1] ?? 1)
  response.writeHead(200, { "content-type": "text/event-stream" })
  const chunk = (delta, finish_reason, usage) => {
    const data = { id: "c", object: "chat.completion.chunk", created: 1, model: "slow", usage }
    response.write(`data: ${JSON.stringify({ ...data, choices: [{ index: 0, delta, finish_reason }] })}\n\n`)
  }
  for (let word = 1; word <= last && !response.destroyed; word += 1) {
    chunk({ role: "assistant", content: `${word} ` }, null)
    await setTimeout(100)
  }
  chunk({}, "stop", { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 })
  response.end("data: [DONE]\n\n")
}).listen(8000)
