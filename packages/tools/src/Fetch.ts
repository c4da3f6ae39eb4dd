/**
 * The tool `fetch`: reads a page or file of the web, HTML as Markdown. Follows redirects within the same origin only, is
 * bounded in time and size, and reaches no private address unless the host allows it. Spec: TO-780..TO-783.
 */
import { lookup, type LookupAddress, type LookupOptions } from "node:dns"
import { BlockList, isIP } from "node:net"
import { TextDecoder } from "node:util"
import * as Tool from "@effect/ai/Tool"
import { Agent, EnvHttpProxyAgent, fetch } from "@effect/platform-node/Undici"
import { Data, Effect, Predicate, Schema } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { literal } from "@daybook/core/domain/Rule"
import { boundedBody } from "@daybook/core/http/BoundedBody"
import { refusalIn, sameOrigin } from "@daybook/core/http/SameOrigin"
import { Permission } from "@daybook/core/permission/Permission"
import { define } from "@daybook/core/tool/ToolDefinition"
import { messageOf } from "@daybook/log/support/SystemError"

/** What the host allows the tool. */
export interface FetchOptions {
  /** Whether addresses of this machine and of private networks may be read. Default: false. */
  readonly privateAddresses?: boolean
}

const mostBytes = 5 * 1024 * 1024
/** HTML beyond this is cut before it is converted, which takes processor time. */
const mostHtml = 1024 * 1024
const patience = "30 seconds"

const FetchTool = Tool.make("fetch", {
  description:
    "Reads a page or a text file of the web over HTTP or HTTPS. HTML becomes Markdown, without scripts and navigation. " +
    "Follows redirects within the same origin; a redirect elsewhere is reported with its address.",
  parameters: {
    url: Schema.NonEmptyString.annotations({ description: "The whole address, with https:// or http://" }),
    raw: Schema.optionalWith(Schema.Boolean, { exact: true }).annotations({
      description: "Whether HTML is returned as it is; by default as Markdown"
    })
  },
  success: Schema.Struct({
    url: Schema.String,
    status: Schema.Int,
    type: Schema.String,
    title: Schema.optionalWith(Schema.String, { exact: true }),
    /** Whether the page was longer than what was converted. */
    cut: Schema.Boolean,
    text: Schema.String
  })
})

const fail = (message: string) => new ToolFailure({ type: "fetch", message })

// ---- private addresses

/** Networks that are not public: this machine, private and link-local networks, and those with a special use. */
const special = new BlockList()
for (const [network, bits] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3]
] as const) {
  special.addSubnet(network, bits, "ipv4")
}
for (const [network, bits] of [
  ["::", 127],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2002::", 16],
  ["fc00::", 7],
  ["fe80::", 10],
  ["ff00::", 8]
] as const) {
  special.addSubnet(network, bits, "ipv6")
}

/** Whether an address is of no public network. IPv4 within IPv6 counts as IPv4. */
export const isPrivate = (address: string): boolean =>
  isIP(address) === 0 || special.check(address, isIP(address) === 6 ? "ipv6" : "ipv4")

class PrivateAddress extends Data.TaggedError("PrivateAddress")<{ readonly message: string }> {}

const refusalOf = (host: string) =>
  new PrivateAddress({
    message: `${host} is an address of this machine or of a private network, which the tool does not read`
  })

type Found = (error: Error | null, address: string | Array<LookupAddress>, family?: number) => void

/** Finds addresses as usual, and refuses a name with a private one. The connection uses what was checked. */
const publicLookup = (host: string, options: LookupOptions, found: Found): void =>
  lookup(host, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return found(error, "")
    const [first] = addresses
    if (first === undefined || addresses.some(({ address }) => isPrivate(address))) return found(refusalOf(host), "")
    return options.all === true ? found(null, addresses) : found(null, first.address, first.family)
  })

/** The host of an address as the system is asked for it. */
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, "$1")

// ---- requests

const isProxied = (): boolean =>
  ["HTTPS_PROXY", "HTTP_PROXY"].some((name) => (process.env[name] ?? process.env[name.toLowerCase()] ?? "") !== "")

/** A `fetch` that connects to public addresses only, unless the host allows others. Proxies find addresses themselves. */
export const makeFetch = ({ privateAddresses = false }: FetchOptions): typeof globalThis.fetch => {
  const connect = { timeout: 10_000, ...(privateAddresses ? {} : { lookup: publicLookup }) }
  const dispatcher = isProxied() ? new EnvHttpProxyAgent({ connect }) : new Agent({ connect })
  const request = (input: URL, init: object) => fetch(input, { ...init, dispatcher })
  // undici's Request and Response types differ from the global ones in name only.
  return sameOrigin(request as unknown as (url: URL, init: RequestInit) => Promise<Response>)
}

/** Why a request failed: the innermost cause, which names the address or the network's fault. */
export const reasonOf = (error: unknown): string => {
  const refused = refusalIn(error)
  if (refused !== undefined) return refused.message
  let cause = error
  for (let depth = 0; depth < 5 && Predicate.hasProperty(cause, "cause") && cause.cause !== undefined; depth++) {
    cause = cause.cause
  }
  return messageOf(cause)
}

const accepted = "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.1"

const isText = (type: string): boolean =>
  /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml|yaml|toml|javascript|ecmascript|x-sh|x-ndjson|graphql))/.test(type)

/** The encoding that the headers or the page itself name. */
const decoderOf = (header: string, bytes: Uint8Array): TextDecoder => {
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 1_024))
  const named = /charset=["']?([\w-]+)/i.exec(header)?.[1] ?? /<meta[^>]{0,100}charset=["']?([\w-]+)/i.exec(head)?.[1]
  try {
    return new TextDecoder(named ?? "utf-8")
  } catch {
    return new TextDecoder()
  }
}

const get = (send: typeof globalThis.fetch, url: URL) =>
  Effect.tryPromise({
    try: async (signal) => {
      const headers = { accept: accepted, "user-agent": "daybook (an agent's tool)" }
      const response = await send(url.href, { signal, headers })
      const header = response.headers.get("content-type") ?? "application/octet-stream"
      const type = header.split(";")[0]?.trim().toLowerCase() ?? ""
      if (!isText(type)) {
        await response.body?.cancel()
        return { status: response.status, type, text: undefined }
      }
      const limits = { body: mostBytes, event: mostBytes, stream: mostBytes }
      const bytes = new Uint8Array(await boundedBody(response, limits).arrayBuffer())
      return { status: response.status, type, text: decoderOf(header, bytes).decode(bytes) }
    },
    catch: (error) => fail(`${url.host} could not be read: ${reasonOf(error)}`)
  }).pipe(
    Effect.timeoutFail({
      duration: patience,
      onTimeout: () => fail(`${url.host} gave no whole answer in ${patience}`)
    }),
    Effect.flatMap(({ status, text, type }) =>
      text === undefined
        ? fail(`${url.href} is ${type}, which is no text; download it with a command if you need it`)
        : Effect.succeed({ status, type, text })
    )
  )

// ---- HTML

/** Elements without anything to read. */
const leftOut = ["script", "style", "noscript", "template", "iframe", "nav", "form", "button", "link", "meta"] as const

const titleOf = (html: string): string | undefined => {
  const title = /<title[^>]{0,200}>([^<]{1,400})/i.exec(html)?.[1]?.replaceAll(/\s+/g, " ").trim()
  return title === undefined || title === "" ? undefined : title
}

const markdownOf = (html: string): Effect.Effect<string> =>
  Effect.promise(async () => {
    const { default: Turndown } = await import("turndown")
    const service = new Turndown({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-" })
    service.remove([...leftOut])
    service.addRule("svg", { filter: (node) => node.nodeName.toLowerCase() === "svg", replacement: () => "" })
    return service
      .turndown(html)
      .replaceAll(/\n{3,}/g, "\n\n")
      .trim()
  })

/** `fetch`, with what the host allows it. */
export const makeFetchTool = Effect.fnUntraced(function* (options: FetchOptions = {}) {
  const permission = yield* Permission
  const send = makeFetch(options)
  return define(FetchTool, {
    readOnly: true,
    permission: "fetch",
    handler: Effect.fn("Tool.fetch")(function* ({ raw = false, url: given }, call) {
      const url = URL.canParse(given) ? new URL(given) : undefined
      if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
        return yield* fail(`${JSON.stringify(given)} is no address with https:// or http://`)
      }
      if (url.username !== "" || url.password !== "") {
        return yield* fail("an address with a user name or a password is not read")
      }
      const host = hostOf(url)
      if (options.privateAddresses !== true && isIP(host) !== 0 && isPrivate(host)) {
        return yield* fail(refusalOf(host).message)
      }
      yield* permission.authorize({
        ...call,
        tool: "fetch",
        permission: "fetch",
        resources: [url.href],
        title: `Read ${url.href}`,
        always: [`${literal(url.origin)}/*`]
      })
      const { status, text, type } = yield* get(send, url)
      if (status >= 400) return yield* fail(`${url.href} answered HTTP ${status}: ${text.slice(0, 1_000)}`)
      const isHtml = type === "text/html" || type === "application/xhtml+xml"
      if (raw || !isHtml) return { url: url.href, status, type, cut: false, text }
      const title = titleOf(text)
      const markdown = yield* markdownOf(text.slice(0, mostHtml))
      const cut = text.length > mostHtml
      return { url: url.href, status, type, ...(title === undefined ? {} : { title }), cut, text: markdown }
    }),
    render: ({ text, ...structured }) => {
      const { cut, status, title, type, url } = structured
      const head = [`${url} (HTTP ${status}, ${type})`, ...(title === undefined ? [] : [title])].join("\n")
      const note = cut ? `\n\n[The page goes on: only its first ${mostHtml} characters were converted.]` : ""
      return { structured, content: [{ type: "text", text: `${head}\n\n${text}${note}` }] }
    }
  })
})
