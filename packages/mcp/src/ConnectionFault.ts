/** Phrases what goes wrong on a connection to a server, without the server's secrets. */
import { Predicate } from "effect"
import { inSentence, isStdio, type McpServer, type Redactor } from "./McpServer.ts"
import { ServerFault } from "./ServerFault.ts"
import type { Way } from "./Transports.ts"

/** The other side of a connection. */
export interface Peer {
  readonly server: McpServer
  readonly way: Way
  readonly redact: Redactor
}

/** Codes of the protocol's errors. */
const connectionClosed = -32000
export const methodNotFound = -32601

/** The code of an error, if it has one. */
export const codeOf = (cause: unknown): unknown => (Predicate.hasProperty(cause, "code") ? cause.code : undefined)

/**
 * The server refused the request because it does not know the session. The protocol says 404; many servers say 400, with a
 * word about the session.
 */
export const isForgotten = ({ way }: Peer, cause: unknown): boolean =>
  way.hasSession() &&
  (codeOf(cause) === 404 || (codeOf(cause) === 400 && cause instanceof Error && /session/i.test(cause.message)))

/** The HTTP connection broke, or its address leads nowhere. */
const isLoss = (cause: unknown): boolean => cause instanceof TypeError || codeOf(cause) === 404

/** Describes an error of the transport or the protocol, with its cause. */
export const describe = (cause: unknown): string => {
  if (!(cause instanceof Error)) return String(cause)
  const inner = cause.cause instanceof Error ? cause.cause : undefined
  const behind = inner === undefined ? "" : inner.message !== "" ? inner.message : String(codeOf(inner) ?? inner.name)
  return behind === "" || cause.message.includes(behind) ? cause.message : `${cause.message}: ${behind}`
}

/** A fault with these details. */
export const fault = ({ redact }: Peer, details: string) =>
  new ServerFault({ details: inSentence(redact.all(details)) })

const lost = ({ redact }: Peer, details: string) =>
  new ServerFault({ details: inSentence(redact.all(details)), reason: "lost" })

export const forgotten = () => new ServerFault({ details: "it no longer knows the session", reason: "forgotten" })

/** The fault of a request that failed. */
export const faultOf = (peer: Peer, cause: unknown): ServerFault =>
  codeOf(cause) === connectionClosed
    ? lost(peer, "it closed the connection before it answered")
    : isForgotten(peer, cause)
      ? forgotten()
      : isLoss(cause)
        ? lost(peer, describe(cause))
        : fault(peer, describe(cause))

/** Why no connection could be made. */
export const unreachable = (peer: Peer, cause: unknown): ServerFault => {
  const { server, way } = peer
  if (!isStdio(server)) return fault(peer, `it cannot be reached: ${describe(cause)}`)
  switch (codeOf(cause)) {
    case "ENOENT":
      return fault(
        peer,
        `there is no command ${JSON.stringify(server.command)}` +
          (server.cwd === undefined ? "" : `, or no folder ${JSON.stringify(server.cwd)}`)
      )
    case "EACCES":
      return fault(peer, `the command ${JSON.stringify(server.command)} may not be run`)
    case connectionClosed:
      return new ServerFault({ details: `its process ended before it answered${way.lastWords()}` })
    default:
      return new ServerFault({
        details: fault(peer, `it does not start: ${describe(cause)}`).details + way.lastWords()
      })
  }
}
