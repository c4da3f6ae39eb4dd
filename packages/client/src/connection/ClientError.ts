/** Why a server did not answer as the API says. Errors of the verbs themselves are those of `Sessions` (core). */
import { Schema } from "effect"
import * as Access from "@daybook/api/wire/Access"
import { ForeignCursor } from "@daybook/api/wire/Cursor"
import { InvalidInput } from "@daybook/log/domain/InvalidInput"

/** The server cannot be reached, or the connection broke before it answered. */
export class ServerUnreachable extends Schema.TaggedError<ServerUnreachable>("@daybook/client/ServerUnreachable")(
  "ServerUnreachable",
  { details: Schema.String }
) {
  override get message() {
    return `the server cannot be reached: ${this.details}`
  }
}

/** The answer is not one of the API: the server failed, another program listens there, or its version differs. */
export class UnexpectedAnswer extends Schema.TaggedError<UnexpectedAnswer>("@daybook/client/UnexpectedAnswer")(
  "UnexpectedAnswer",
  { status: Schema.optionalWith(Schema.Int, { exact: true }), details: Schema.String }
) {
  override get message() {
    const status = this.status === undefined ? "" : ` ${this.status}`
    return `the server's answer${status} is not one of the API: ${this.details}`
  }
}

/**
 * Every error of a connection. `InvalidInput`: an argument does not fit its schema, and nothing was changed.
 * `ForeignCursor`: the server has another database than before.
 */
export const ConnectionError = Schema.Union(
  ServerUnreachable,
  UnexpectedAnswer,
  InvalidInput,
  ForeignCursor,
  ...Access.Refused.members
)
export type ConnectionError = typeof ConnectionError.Type
