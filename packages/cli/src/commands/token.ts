/** `daybook token`: makes a token for the HTTP API. Spec: CL-302. */
import { Clock, Duration, Effect, Schema } from "effect"
import { SessionID } from "@daybook/log/domain/Identifiers"
import { issue } from "@daybook/server/http/Tokens"
import * as Flags from "../arguments/Flags.ts"
import { type FieldValues, verb } from "../arguments/Verb.ts"
import * as HttpWork from "../host/HttpWork.ts"
import { durationOf } from "../support/Amounts.ts"
import { Output, writeJson } from "../terminal/Output.ts"

const given = {
  scope: Flags.choice("scope", ["read", "prompt", "admin"], "what the token permits (default: read)"),
  session: Flags.value("session", "ID", "permit only this session (default: all)", (text) =>
    Effect.mapError(Schema.decodeUnknown(SessionID)(text), () => "a session's id")
  ),
  expires: Flags.value<number | "never">(
    "expires",
    "TIME",
    "when the token expires: 90m, 12h, 30d or never (default: 30d)",
    (text) => {
      const millis = text === "never" ? text : durationOf(text)
      return millis === undefined ? Effect.fail("a time such as 90m, 12h or 30d, or never") : Effect.succeed(millis)
    }
  ),
  json: Flags.json
}

const standard = Duration.toMillis("30 days")

const run = Effect.fn("Command.token")(function* ({
  expires = standard,
  json,
  scope = "read",
  session
}: FieldValues<typeof given>) {
  const now = yield* Clock.currentTimeMillis
  const grant = {
    scope,
    ...(session === undefined ? {} : { sessionID: session }),
    ...(expires === "never" ? {} : { expires: now + expires })
  }
  const token = issue(yield* HttpWork.ensure, grant)
  yield* json ? writeJson({ type: "token", token, ...grant }) : (yield* Output).write(`${token}\n`)
})

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
  given,
  examples: [
    ["daybook token", "a token that reads, for 30 days"],
    ["daybook token --scope prompt --session ses_1 --expires 12h", "prompts one session until tonight"]
  ],
  run
})
