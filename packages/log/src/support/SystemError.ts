/** Reads the system's code, such as `ENOENT`, and the message of a thrown value. */
import { Predicate } from "effect"

export const codeOf = (cause: unknown, otherwise = "unknown"): string =>
  Predicate.hasProperty(cause, "code") && typeof cause.code === "string" ? cause.code : otherwise

const network: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was cut",
  EAI_AGAIN: "the host's name cannot be looked up now",
  EHOSTUNREACH: "there is no route to the host",
  ENETUNREACH: "there is no route to the network",
  ENOTFOUND: "no host of this name is known",
  ETIMEDOUT: "the host does not answer"
}

/** Says what a code of the network means; Node's messages name a system call, and the address again. */
export const networkWords = (code: string): string | undefined =>
  Object.hasOwn(network, code) ? `${network[code]} (${code})` : undefined

/** Why a request got no answer. `fetch` throws an error whose cause knows. */
export const unansweredWords = (cause: unknown): string => {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  return networkWords(codeOf(inner)) ?? (messageOf(inner) || String(inner))
}

/** Whether nothing has the path. */
export const isAbsent = (cause: unknown): boolean => ["ENOENT", "ENOTDIR"].includes(codeOf(cause))

/** The message of an error; any other value as a text. */
export const messageOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))
