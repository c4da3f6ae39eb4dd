/** Defines how a server fails. */
import { Data } from "effect"

/** A server's failure, as a sentence without its secrets. */
export class ServerFault extends Data.TaggedError("ServerFault")<{
  readonly details: string
  /** The transport broke, so the server is connected again; otherwise the server answered with an error. */
  readonly lost?: boolean
}> {}
