/**
 * Instructions from http and https addresses that the host configured. All are fetched concurrently, with a short
 * timeout, and again when stale. While an address fails, its last text still holds, from this process or from what the
 * session was told. An address that never answered is listed without a text, so that it does not block a session.
 * Spec: specs/context.md CX-27, CX-28, CX-48.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Clock, Duration, Effect, Option, Stream } from "effect"
import { refusalIn } from "../../http/HttpRefused.ts"
import { safeFetch } from "../../http/SameOrigin.ts"
import { warnOnce } from "../../support/WarnOnce.ts"
import { decodeInstructions, maximumBytes } from "../InstructionFile.ts"
import { bounded, type Entry, instructionSource } from "../Instructions.ts"
import { available, type ContextSource } from "../SystemContext.ts"

export interface RemoteOptions {
  /** Timeout per address, from the request to the last byte. */
  readonly timeout?: Duration.DurationInput
}

/** Maximum addresses that are fetched. */
const maximumAddresses = 32
/** How long an answer stays fresh, and the delay after a failure. */
const fresh = Duration.toMillis("5 minutes")
const retryAfter = Duration.toMillis("30 seconds")

interface Address {
  readonly url: URL
  /** The address for display: without user, password, query and fragment, which may hold secrets. */
  readonly shown: string
  readonly authorization: Option.Option<readonly [string, string]>
}

/** Decodes one part of the address; invalid percent-encoding is kept as it is. */
const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Parses an http or https address and separates its credentials; undefined for anything else. */
export const parseAddress = (text: string): Address | undefined => {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined
  const url = new URL(text)
  const { password, username } = url
  url.username = ""
  url.password = ""
  url.hash = ""
  const shown = `${url.origin}${url.pathname}${url.search === "" ? "" : "?..."}`
  const authorization =
    username === "" && password === "" ? Option.none() : Option.some([decoded(username), decoded(password)] as const)
  return { url, shown, authorization }
}

/** Whether a configured text has the form of an address. */
export const isAddress = (text: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(text)

type Outcome =
  | { readonly _tag: "Text"; readonly text: string; readonly etag: string | undefined }
  /** Not modified (304). */
  | { readonly _tag: "Same" }
  /** Permanently removed (410). */
  | { readonly _tag: "Gone" }
  | { readonly _tag: "Failed"; readonly why: string }

const failed = (why: string): Outcome => ({ _tag: "Failed", why })

const readable = /^(text\/(?!html)|application\/(json|yaml|x-yaml|markdown|x-markdown)\b)/i

const body = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.suspend(() => {
    const chunks: Array<Uint8Array> = []
    let size = 0
    return Stream.runForEachWhile(response.stream, (chunk) =>
      Effect.sync(() => {
        chunks.push(chunk)
        size += chunk.length
        return size <= maximumBytes
      })
    ).pipe(Effect.map(() => decodeInstructions(Buffer.concat(chunks))))
  })

const outcomeOf = Effect.fnUntraced(function* (response: HttpClientResponse.HttpClientResponse) {
  if (response.status === 304) return { _tag: "Same" } as Outcome
  if (response.status === 410) return { _tag: "Gone" } as Outcome
  if (response.status !== 200) return failed(`it answered with status ${response.status}`)
  const type = response.headers["content-type"]
  if (type !== undefined && !readable.test(type))
    return failed(`it answered with ${type.slice(0, 100)}, which is not plain text`)
  const text = yield* body(response)
  return text === ""
    ? failed("its answer is empty")
    : ({ _tag: "Text", text, etag: response.headers["etag"] } as Outcome)
})

const makeAddress = (
  { authorization, shown, url }: Address,
  client: HttpClient.HttpClient,
  timeout: Duration.DurationInput
) => {
  const one = Effect.unsafeMakeSemaphore(1).withPermits(1)
  const warn = warnOnce()
  let last: Extract<Outcome, { readonly _tag: "Text" | "Gone" }> | undefined
  let until = 0

  const ask = Effect.suspend(() => {
    const etag = last?._tag === "Text" ? last.etag : undefined
    const request = HttpClientRequest.get(url.href).pipe(
      HttpClientRequest.setHeader("accept", "text/plain, text/markdown, text/*;q=0.8"),
      Option.match(authorization, {
        onNone: () => (it: HttpClientRequest.HttpClientRequest) => it,
        onSome: ([user, password]) => HttpClientRequest.basicAuth(user, password)
      }),
      etag === undefined ? (it) => it : HttpClientRequest.setHeader("if-none-match", etag)
    )
    return client.execute(request).pipe(Effect.flatMap(outcomeOf), Effect.scoped)
  }).pipe(
    Effect.timeoutTo({
      duration: timeout,
      onSuccess: (outcome) => outcome,
      onTimeout: () => failed(`it did not answer within ${Duration.format(timeout)}`)
    }),
    Effect.catchTags({
      RequestError: (error) =>
        Effect.succeed(failed(refusalIn(error)?.message ?? `the request failed (${error.reason})`)),
      ResponseError: ({ reason }) => Effect.succeed(failed(`its answer could not be read (${reason})`))
    })
  )

  /** The address's entry; none once it is gone. */
  return one(
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (now >= until) {
        const outcome = yield* ask
        if (outcome._tag === "Text" || outcome._tag === "Gone") last = outcome
        if (outcome._tag === "Failed") yield* warn(`instructions at ${shown} cannot be loaded: ${outcome.why}`)
        until = now + (outcome._tag === "Failed" ? retryAfter : fresh)
      }
      if (last?._tag === "Gone") return Option.none<Entry>()
      return Option.some<Entry>(last === undefined ? { path: shown } : { path: shown, text: last.text })
    })
  )
}

/** The instructions at these addresses, in the order of the configuration. */
export const remoteInstructions = Effect.fnUntraced(
  function* (addresses: ReadonlyArray<string>, { timeout = "5 seconds" }: RemoteOptions = {}) {
    // No tracing: a third party must not learn trace ids, and a span would record the address with its secrets.
    const client = (yield* HttpClient.HttpClient).pipe(
      HttpClient.withTracerPropagation(false),
      HttpClient.withTracerDisabledWhen(() => true)
    )
    const parsed = addresses.map(parseAddress)
    if (parsed.includes(undefined) || addresses.length > maximumAddresses) {
      yield* Effect.logWarning(
        `configured instructions are fetched from at most ${maximumAddresses} addresses, http and https only; the others are ignored`
      )
    }
    const looks = parsed
      .flatMap((address) => (address === undefined ? [] : [address]))
      .slice(0, maximumAddresses)
      .map((address) => makeAddress(address, client, timeout))
    return instructionSource({
      key: "instructions/3-remote",
      what: "the instructions from the network",
      rule: "They were configured by the user. Where two of them disagree, the later one counts.",
      load: () =>
        Effect.map(Effect.all(looks, { concurrency: "unbounded" }), (entries) =>
          available(bounded(entries.flatMap(Option.toArray)))
        )
    }) satisfies ContextSource
  },
  Effect.provide(FetchHttpClient.layer),
  Effect.provideService(FetchHttpClient.Fetch, safeFetch)
)
