/**
 * The tool `search`: asks a search engine of the web, which the host configures, and returns titles, addresses and
 * excerpts. Spec: TO-790..TO-793.
 */
import * as Tool from "@effect/ai/Tool"
import { Effect, Either, Redacted, Schema } from "effect"
import { ToolFailure } from "@daybook/core/domain/ToolError"
import { boundedBody } from "@daybook/core/http/BoundedBody"
import { Permission } from "@daybook/core/permission/Permission"
import { define } from "@daybook/core/tool/ToolDefinition"
import { makeFetch, reasonOf } from "./Fetch.ts"

/** A search engine. `url` is another address than the provider's own, such as a proxy's; SearXNG has none of its own. */
export type SearchProvider =
  | { readonly provider: "brave" | "tavily"; readonly apiKey: Redacted.Redacted; readonly url?: string }
  | { readonly provider: "searxng"; readonly url: string }

const mostBytes = 2 * 1024 * 1024
const mostResults = 20
const mostExcerpt = 1_000
const patience = "30 seconds"

const Result = Schema.Struct({ title: Schema.String, url: Schema.String, excerpt: Schema.String })
type Result = typeof Result.Type

const SearchTool = Tool.make("search", {
  description:
    "Searches the web, not files. Returns titles, addresses and excerpts of pages; read a page with `fetch`. What pages say is " +
    "not checked.",
  parameters: {
    query: Schema.NonEmptyString.annotations({ description: "What to look for, as one types it into a search engine" }),
    count: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, mostResults)), { exact: true }).annotations({
      description: `Most results, 1 to ${mostResults}. Default: 8`
    })
  },
  success: Schema.Struct({ provider: Schema.String, results: Schema.Array(Result) })
})

const fail = (message: string) => new ToolFailure({ type: "search", message })

// ---- providers

interface Asked {
  readonly url: URL
  readonly init: RequestInit
}

const withQuery = (address: string, parameters: Readonly<Record<string, string>>): URL => {
  const url = new URL(address)
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return url
}

/** The request of a provider's own interface. */
const askedOf = (from: SearchProvider, query: string, count: number): Asked => {
  const accept = "application/json"
  switch (from.provider) {
    case "brave": {
      const address = from.url ?? "https://api.search.brave.com/res/v1/web/search"
      const url = withQuery(address, { q: query, count: `${count}`, text_decorations: "false" })
      return { url, init: { headers: { accept, "x-subscription-token": Redacted.value(from.apiKey) } } }
    }
    case "tavily": {
      const authorization = `Bearer ${Redacted.value(from.apiKey)}`
      const headers = { accept, authorization, "content-type": "application/json" }
      const body = JSON.stringify({ query, max_results: count })
      return { url: new URL(from.url ?? "https://api.tavily.com/search"), init: { method: "POST", headers, body } }
    }
    case "searxng": {
      const url = withQuery(new URL("search", from.url.replace(/\/*$/, "/")).href, { q: query, format: "json" })
      return { url, init: { headers: { accept } } }
    }
  }
}

const text = Schema.optional(Schema.NullOr(Schema.String))
const Found = Schema.Struct({ title: text, url: Schema.String, description: text, content: text })
const decodeFound = Schema.decodeUnknownEither(Found)
const List = Schema.Array(Schema.Unknown)
/** Brave has its results below `web`, which is absent if there are none; the others have them at the top. */
const decodeAnswer = Schema.decodeEither(
  Schema.parseJson(
    Schema.Struct({
      results: Schema.optional(List),
      web: Schema.optional(Schema.NullOr(Schema.Struct({ results: Schema.optional(List) })))
    })
  )
)

const clean = (words: string, most: number): string => {
  const line = words.replaceAll(/\s+/g, " ").trim()
  return line.length > most ? `${line.slice(0, most)}…` : line
}

/** One result; none if it is no page of the web. */
const resultOf = (given: unknown): ReadonlyArray<Result> => {
  const found = decodeFound(given)
  if (Either.isLeft(found) || !/^https?:\/\//.test(found.right.url)) return []
  const { content, description, title, url } = found.right
  return [{ title: clean(title ?? url, 300), url, excerpt: clean(description ?? content ?? "", mostExcerpt) }]
}

/** What a person can do about a refusal. */
const adviceOn = (provider: SearchProvider["provider"], status: number): string => {
  if (provider === "searxng" && status === 403) return " (its settings must list json under search.formats)"
  return status === 401 || status === 403 ? " (is the key right?)" : ""
}

const ask = (send: typeof globalThis.fetch, from: SearchProvider, { init, url }: Asked) =>
  Effect.tryPromise({
    try: async (signal) => {
      const response = await send(url.href, { ...init, signal })
      const limits = { body: mostBytes, event: mostBytes, stream: mostBytes }
      return { status: response.status, body: await boundedBody(response, limits).text() }
    },
    catch: (error) => fail(`${url.host} could not be asked: ${reasonOf(error)}`)
  }).pipe(
    Effect.timeoutFail({
      duration: patience,
      onTimeout: () => fail(`${url.host} gave no whole answer in ${patience}`)
    }),
    Effect.flatMap(({ body, status }) => {
      if (status !== 200) {
        return fail(`${url.host} answered HTTP ${status}${adviceOn(from.provider, status)}: ${clean(body, 500)}`)
      }
      return Either.match(decodeAnswer(body), {
        onLeft: () => fail(`${url.host} gave an answer that is none of ${from.provider}: ${clean(body, 200)}`),
        onRight: ({ results, web }) => Effect.succeed((results ?? web?.results ?? []).flatMap(resultOf))
      })
    })
  )

/** `search`, with the provider that the host configures. */
export const makeSearchTool = Effect.fnUntraced(function* (from: SearchProvider) {
  const permission = yield* Permission
  // A person configured the address, which may be on this machine.
  const send = makeFetch({ privateAddresses: true })
  return define(SearchTool, {
    readOnly: true,
    permission: "search",
    handler: Effect.fn("Tool.search")(function* ({ count = 8, query }, call) {
      if (from.provider !== "searxng" && Redacted.value(from.apiKey) === "") {
        return yield* fail(`${from.provider} has no key: its variable is not set`)
      }
      yield* permission.authorize({
        ...call,
        tool: "search",
        permission: "search",
        resources: [query],
        title: `Search the web for ${JSON.stringify(query)}`,
        always: ["*"]
      })
      const results = yield* ask(send, from, askedOf(from, query, count))
      return { provider: from.provider, results: results.slice(0, count) }
    }),
    render: (structured) => {
      const lines = structured.results.map(({ excerpt, title, url }, index) =>
        [`${index + 1}. ${title}`, url, ...(excerpt === "" ? [] : [excerpt])].join("\n")
      )
      return { structured, content: [{ type: "text", text: lines.join("\n\n") || "Nothing was found." }] }
    }
  })
})
