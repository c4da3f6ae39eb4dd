/**
 * Bounds what one client holds of a server: open requests per address and token, streams among them, connections per
 * address, requests per token and second, and wrong tokens per address and minute. Holds counts, but no clock. Spec:
 * HT-26, HT-28, HT-29 in specs/http.md.
 */
import type { IncomingMessage } from "node:http"
import { maximumBytes } from "@daybook/core/session/PromptBounds"
import { isLoopback } from "./Site.ts"
import { putNewest } from "@daybook/log/support/Newest"

// A token bucket for each key; it has no clock.

/** Keys that are remembered. A forgotten one has a full bucket again. */
const remembered = 4_096

/** Buckets of `size` requests that gain `perSecond`. Times are in milliseconds. */
export const makeBuckets = ({ perSecond, size }: { readonly perSecond: number; readonly size: number }) => {
  const buckets = new Map<string, { readonly level: number; readonly at: number }>()
  return {
    /** Takes a request; the seconds to wait if there is none left. */
    take: (key: string, now: number) => {
      const { at, level: before } = buckets.get(key) ?? { at: now, level: size }
      // A clock that goes back fills nothing.
      const level = Math.min(size, before + (Math.max(0, now - at) / 1_000) * perSecond)
      putNewest(buckets, key, { level: level < 1 ? level : level - 1, at: now }, remembered)
      return level < 1 ? Math.max(1, Math.ceil((1 - level) / perSecond)) : undefined
    }
  }
}

/** Bytes of a body around its prompt. */
const aroundPrompt = 65_536

/** How much one client may hold. */
export interface Limits {
  /** Open requests of one token at one address, streams included. */
  readonly requests: number
  /** Open requests of one connection: a client that pipelines more is disconnected. */
  readonly pipelined: number
  /** Connections of another machine. */
  readonly connections: number
  readonly wrongTokens: number
  /** Requests a second of one token, without streams; twice as many at once. */
  readonly rate: number
  /** Bytes of a body. Pictures and files stand in prompts as text. */
  readonly body: number
}

export const defaultLimits: Limits = {
  requests: 4_096,
  pipelined: 32,
  connections: 4_096,
  wrongTokens: 30,
  rate: 4_000,
  body: maximumBytes + aroundPrompt
}

export interface Clients {
  /** The address of a client; behind a proxy, the one that the proxy saw. */
  readonly addressOf: (request: IncomingMessage) => string
  /** Begins a request; undefined if the client has too many. The returned function ends it. */
  readonly request: (request: IncomingMessage) => (() => void) | undefined
  /** Begins a connection, as `request`. */
  readonly connection: (address: string) => (() => void) | undefined
  /** Counts a wrong token; returns the seconds to wait if there were too many. */
  readonly wrongToken: (address: string, now: number) => number | undefined
  /** Counts a request with a valid token; returns the seconds to wait if there were too many. */
  readonly rated: (token: string, now: number) => number | undefined
}

const minute = 60_000
/** Addresses whose wrong tokens are remembered. */
const rememberedAddresses = 4_096

/** Counts open things by a key, up to a maximum. */
const counter = (most: number) => {
  const open = new Map<string, number>()
  return (key: string): (() => void) | undefined => {
    const before = open.get(key) ?? 0
    if (before >= most) return undefined
    open.set(key, before + 1)
    return () => {
      const now = (open.get(key) ?? 1) - 1
      if (now > 0) open.set(key, now)
      else open.delete(key)
    }
  }
}

const plain = (address: string | undefined): string => (address ?? "").replace(/^::ffff:/, "")

/** The last entry is the proxy's own; a client can write the others. */
const forwarded = (header: string | ReadonlyArray<string> | undefined): string | undefined =>
  [header ?? []].flat().join(",").split(",").at(-1)?.trim().slice(0, 64) || undefined

export const make = (limits: Limits, behindProxy: boolean): Clients => {
  const requests = counter(limits.requests)
  const connections = counter(limits.connections)
  const buckets = makeBuckets({ perSecond: limits.rate, size: 2 * limits.rate })
  const wrong = new Map<string, { readonly since: number; readonly count: number }>()

  const addressOf = ({ headers, socket }: IncomingMessage): string => {
    const direct = plain(socket.remoteAddress)
    return behindProxy ? (forwarded(headers["x-forwarded-for"]) ?? direct) : direct
  }

  return {
    addressOf,
    // Without the word before the token, which may be written in capitals too.
    request: (request) =>
      requests(`${addressOf(request)} ${request.headers.authorization?.slice("bearer ".length) ?? ""}`),
    // Everyone on this machine has the same address, and so has everyone behind a proxy.
    connection: (address) => (behindProxy || isLoopback(plain(address)) ? () => {} : connections(plain(address))),
    rated: buckets.take,
    wrongToken: (address, now) => {
      const known = wrong.get(address)
      // A clock that goes back begins a new window.
      const isOpen = known !== undefined && now >= known.since && now - known.since < minute
      const window = isOpen ? known : { since: now, count: 0 }
      putNewest(wrong, address, { ...window, count: window.count + 1 }, rememberedAddresses)
      return window.count < limits.wrongTokens ? undefined : Math.ceil((window.since + minute - now) / 1_000)
    }
  }
}
