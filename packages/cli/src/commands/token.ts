/** `daybook token`: makes a token for the HTTP API. Spec: CL-302. */
import { Clock, Duration, Effect, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { issue } from "@daybook/server/http/Tokens"
import * as Flags from "../arguments/Flags.ts"
import { verb } from "../arguments/Verb.ts"
import * as HttpWork from "../host/HttpWork.ts"
import { jsonLine } from "../render/Plain.ts"
import { Output } from "../terminal/Output.ts"

interface Request {
  readonly scope: "read" | "prompt" | "admin"
  readonly sessionID: SessionID | undefined
  /** Milliseconds from now; undefined for a token without an end. */
  readonly lifetime: number | undefined
  readonly json: boolean
}

const run = Effect.fn("Command.token")(function* ({ json, lifetime, scope, sessionID }: Request) {
  const output = yield* Output
  const now = yield* Clock.currentTimeMillis
  const grant = {
    scope,
    ...(sessionID === undefined ? {} : { sessionID }),
    ...(lifetime === undefined ? {} : { expires: now + lifetime })
  }
  const token = issue(yield* HttpWork.ensure, grant)
  yield* output.write(json ? `${jsonLine({ type: "token", token, ...grant }, output.terminal)}\n` : `${token}\n`)
})

const scope = Flags.choice("scope", ["read", "prompt", "admin"], "what the token permits (default: read)")

const session = Flags.value("session", "ID", "permit only this session (default: all)", (text) =>
  Effect.mapError(Schema.decodeUnknown(SessionID)(text), () => "a session's id")
)

const units = { m: Duration.minutes, h: Duration.hours, d: Duration.days } as const

/** `never`, or a number with a unit, as milliseconds. */
const lifetimeOf = (text: string): Effect.Effect<number | undefined, string> => {
  if (text === "never") return Effect.succeed(undefined)
  const [, amount = "", unit = ""] = /^([1-9]\d{0,4})([mhd])$/.exec(text) ?? []
  const of = unit === "m" || unit === "h" || unit === "d" ? units[unit] : undefined
  return of === undefined
    ? Effect.fail("a time such as 90m, 12h or 30d, or never")
    : Effect.succeed(Duration.toMillis(of(Number(amount))))
}

const expires = Flags.value(
  "expires",
  "TIME",
  "when the token expires: 90m, 12h, 30d or never (default: 30d)",
  lifetimeOf
)

export const token = verb({
  name: "token",
  summary: "make a token for the HTTP API",
  words: "",
  details: [
    "A client of daybook serve --http sends it as: authorization: Bearer TOKEN. read reads, prompt also prompts and " +
      "answers, admin does everything. With --session it reaches this session alone. It is made from the server's own " +
      "token, DAYBOOK_HTTP_TOKEN or the file http-token in the data folder, and is not stored: removing that file ends all tokens, once the " +
      "server is started again."
  ],
  given: { scope, session, expires, json: Flags.json },
  examples: [
    ["daybook token", "a token that reads, for 30 days"],
    ["daybook token --scope prompt --session ses_1 --expires 12h", "prompts one session until tonight"]
  ],
  run: (given) =>
    run({
      scope: given.scope ?? "read",
      sessionID: given.session,
      lifetime: given.expires ?? Duration.toMillis(units.d(30)),
      json: given.json
    })
})
