/** Defines how a server fails. */
import { Schema } from "effect"

/** A server's failure, as a sentence without its secrets. */
export class ServerFault extends Schema.TaggedError<ServerFault>("@daybook/mcp/ServerFault")("ServerFault", {
  details: Schema.String,
  /** The transport broke, so the server is connected again; otherwise the server answered with an error. */
  lost: Schema.optionalWith(Schema.Boolean, { exact: true })
}) {}
