/** Defines how a server fails. */
import { Schema } from "effect"

/** A server's failure, as a sentence without its secrets. */
export class ServerFault extends Schema.TaggedError<ServerFault>("@daybook/mcp/ServerFault")("ServerFault", {
  details: Schema.String,
  /**
   * `lost`: the transport broke, and the server is connected again. `forgotten`: the server no longer knows the session,
   * and did not run the request. `unavailable`: it is not connected. Absent: it answered with an error.
   */
  reason: Schema.optionalWith(Schema.Literal("lost", "forgotten", "unavailable"), { exact: true })
}) {}
