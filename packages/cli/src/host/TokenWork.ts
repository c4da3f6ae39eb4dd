/** Makes tokens for `daybook token`. Spec: CL-302 in specs/cli.md. */
import { Clock, Effect } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import { issue } from "@daybook/server/http/Tokens"
import { jsonLine } from "../render/Plain.ts"
import { Output } from "../terminal/Output.ts"
import * as HttpToken from "./HttpToken.ts"

export interface Request {
  readonly scope: "read" | "prompt" | "admin"
  readonly sessionID: SessionID | undefined
  /** Milliseconds from now; undefined for a token without an end. */
  readonly lifetime: number | undefined
  readonly json: boolean
}

export const run = Effect.fn("Command.token")(function* ({ json, lifetime, scope, sessionID }: Request) {
  const output = yield* Output
  const now = yield* Clock.currentTimeMillis
  const grant = {
    scope,
    ...(sessionID === undefined ? {} : { sessionID }),
    ...(lifetime === undefined ? {} : { expires: now + lifetime })
  }
  const token = issue(yield* HttpToken.ensure, grant)
  yield* output.write(json ? `${jsonLine({ type: "token", token, ...grant }, output.terminal)}\n` : `${token}\n`)
})
