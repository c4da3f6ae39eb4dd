/** Nodes that begin again whenever they end, as under a supervisor: each is `daybook serve --node` at addresses of its own. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Deferred, Effect, Exit, Schema } from "effect"
import { place, type Running } from "../../cli/support/Process.ts"
import * as LossyProxy from "../../postgres/support/Proxy.ts"
import * as SteppedClock from "../../support/SteppedClock.ts"
import type { FaultModel } from "./FaultModel.ts"
import { freePort } from "./ServedNode.ts"

const Ready = Schema.parseJson(Schema.Struct({ http: Schema.Struct({ inspector: Schema.String }) }))

/** One process of a node, once it serves. */
export interface Life {
  readonly process: Running
  readonly base: string
  readonly headers: Readonly<Record<string, string>>
}

export interface FaultNode {
  readonly index: number
  readonly proxy: LossyProxy.Proxy
  /** The wall clock of its processes. */
  readonly clock: SteppedClock.SteppedClock
  /** The process, while it serves, as far as the harness knows. */
  readonly life: Life | undefined
  /** The next process that serves, or the one that does. */
  readonly up: Effect.Effect<Life>
  /** Ends the process, and starts the next one after these milliseconds. */
  readonly end: (signal: "SIGKILL" | "SIGTERM", away: number) => Effect.Effect<void>
  /** Ends of processes that nobody asked for, with the end of their log. */
  readonly surprises: ReadonlyArray<string>
  /** Ends and starts, with what the processes logged as errors. */
  readonly errors: ReadonlyArray<string>
}

const config = `agents: { build: { permissions: [{ permission: "*", resource: "*", verdict: allow }] } }`

/** Seconds that running turns may take after SIGTERM. */
const drain = "20"

/** How long a supervisor waits before it starts a process again that ended by itself, in milliseconds. */
const again = 300

const errorsIn = (log: string): ReadonlyArray<string> =>
  log.split("\n").filter((line) => /level=(?:ERROR|FATAL)|\b(?:ERROR|FATAL)\b/.test(line))

export const faultNode = Effect.fnUntraced(function* (
  index: number,
  url: string,
  model: FaultModel,
  recovery: "manual" | "resume"
) {
  const here = yield* place
  mkdirSync(join(here.root, "config"))
  writeFileSync(join(here.root, "config", "config.yaml"), config)
  const proxy = yield* LossyProxy.make(url)
  const clock = SteppedClock.make(join(here.root, "clock"))
  const env = {
    ...clock.env,
    DAYBOOK_DB: proxy.url,
    DAYBOOK_BASE_URL: model.url(index),
    DAYBOOK_MODEL: "openai-compatible/held",
    DAYBOOK_CONFIG: join(here.root, "config", "config.yaml")
  }
  const [address, http] = [`127.0.0.1:${yield* freePort}`, `127.0.0.1:${yield* freePort}`]
  const kept = ["--drain", drain, "--recovery", recovery]
  const words = ["serve", "--node", address, "--http", http, "--json", "--show-token", ...kept]
  const [surprises, errors]: [Array<string>, Array<string>] = [[], []]
  let life: Life | undefined
  let serves = yield* Deferred.make<Life>()
  let [isAsked, away] = [false, again]
  const leave = Effect.gen(function* () {
    life = undefined
    serves = yield* Deferred.make<Life>()
  })

  const live = Effect.gen(function* () {
    const process = yield* here.startAlone(words, { env })
    isAsked = false
    away = again
    // A process that ends before it serves is started again.
    const ready = yield* Effect.exit(process.until("stdout", (text) => text.includes("\n")))
    if (Exit.isSuccess(ready)) {
      const [base = "", token = ""] = (yield* Schema.decodeUnknown(Ready)(ready.value)).http.inspector.split("/#token=")
      life = { process, base, headers: { authorization: `Bearer ${token}`, "content-type": "application/json" } }
      yield* Deferred.succeed(serves, life)
    }
    const { code, signal, stderr } = yield* process.ended
    const how = `node ${index} ended with ${code ?? signal}`
    if (life !== undefined) yield* leave
    errors.push(...errorsIn(stderr))
    if (Exit.isFailure(ready)) errors.push(`${how} before it served: ${stderr.slice(-1000)}`)
    else if (!isAsked || (code !== 0 && signal !== "SIGKILL")) surprises.push(`${how}: ${stderr.slice(-2000)}`)
  })
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.zipRight(
        Effect.scoped(live),
        Effect.suspend(() => Effect.sleep(away))
      )
    )
  )
  const node: FaultNode = {
    index,
    proxy,
    clock,
    get life() {
      return life
    },
    up: Effect.suspend(() => Deferred.await(serves)),
    end: (signal, millis) =>
      Effect.gen(function* () {
        const { process } = yield* Deferred.await(serves)
        isAsked = true
        away = millis
        // At SIGTERM it takes no new requests.
        yield* leave
        yield* process.signal(signal)
        yield* process.ended
      }),
    surprises,
    errors
  }
  return node
})
