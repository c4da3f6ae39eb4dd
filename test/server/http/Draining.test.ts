/** The end of a server that has many readers: each is told where it was. */
import { connect } from "node:net"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { EventLog } from "../../../packages/log/src/log/EventLog.ts"
import { begin, renamed, session } from "../../contracts/Samples.ts"
import { runtime } from "../../support/Harness.ts"
import * as ServedApi from "./support/ServedApi.ts"
import { token } from "./support/ServedApi.ts"

const readers = 500

interface Reader {
  /** Completes when it was sent the text. */
  readonly sent: (text: string) => Effect.Effect<void>
  /** What it was sent, when the server has closed its connection. */
  readonly whole: Effect.Effect<string>
}

/** A connection that follows. */
const following = (url: string, path: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<ReturnType<typeof connect>>((resume) => {
        const { host, hostname, port } = new URL(url)
        const socket = connect(Number(port), hostname, () => {
          socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n\r\n`)
          resume(Effect.succeed(socket))
        })
        socket.on("error", () => {})
      }),
      (socket) => Effect.sync(() => socket.destroy())
    ),
    (socket): Reader => {
      let text = ""
      const heard = new Set<() => void>()
      socket.setEncoding("utf8").on("data", (part: string) => {
        text += part
        for (const each of heard) each()
      })
      return {
        sent: (wanted) =>
          Effect.async((resume) => {
            const look = () => {
              if (!text.includes(wanted)) return
              heard.delete(look)
              resume(Effect.void)
            }
            heard.add(look)
            look()
          }),
        whole: Effect.async((resume) => {
          if (socket.closed) resume(Effect.succeed(text))
          else socket.once("close", () => resume(Effect.succeed(text)))
        })
      }
    }
  )

it.scopedLive(
  `HT-52: each of ${readers} readers gets the end of its stream with the cursor behind its last event`,
  () =>
    Effect.gen(function* () {
      const [log, id, scope] = [yield* EventLog, session(), yield* Scope.make()]
      yield* Effect.addFinalizer((exit) => Scope.close(scope, exit))
      const { url } = yield* Scope.extend(ServedApi.serve(), scope)
      yield* begin(id)
      const open = yield* Effect.replicateEffect(following(url, `/sessions/${id}/events`), readers)
      for (const each of open) yield* each.sent("replay.complete")
      yield* log.append(id, [renamed("the last")])
      yield* Effect.fork(Scope.close(scope, Exit.void))
      const texts = yield* Effect.forEach(open, ({ whole }) => whole)
      const ends = texts.map((text) => /event: end\n.*data: (\{[^\n]*\})\n\n/s.exec(text)?.[1] ?? text.slice(-300))
      for (const [index, end] of ends.entries()) {
        const cursor = [...(texts[index] ?? "").matchAll(/^id: (d1\.\S+)$/gm)].at(-1)?.[1]
        assert.deepInclude(JSON.parse(end), { reason: "draining", cursor })
      }
    }).pipe(Effect.provide(runtime())),
  120_000
)
