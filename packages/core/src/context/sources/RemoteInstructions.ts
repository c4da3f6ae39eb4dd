/**
 * Instructions from http and https addresses that the host configured. Each is asked again after a while, all at once,
 * with little patience; what cannot be had now is what was had last, in this process or in what the session was told,
 * and an address that never answered is named without a text, so that it neither blocks a session nor goes unsaid.
 * Spec: specs/context.md CX-27, CX-28.
 */
import { FetchHttpClient, HttpClient, HttpClientRequest, type HttpClientResponse } from "@effect/platform"
import { Clock, Duration, Effect, Option, Stream } from "effect"
import { refusalIn } from "../../http/HttpRefused.ts"
import { safeFetch } from "../../http/SameOrigin.ts"
import { decodeInstructions, maximumBytes } from "../InstructionFile.ts"
import { bounded, instructionSource, type Entry } from "../Instructions.ts"
import { available, type ContextSource } from "../SystemContext.ts"
import { warnOnce } from "../WarnOnce.ts"

export interface RemoteOptions {
  /** How long one address may take, from asking to the last byte. */
  readonly timeout?: Duration.DurationInput
}

/** Addresses that are asked at all. */
const maximumAddresses = 32
/** How long an answer counts, and how long to wait after a failure. */
const fresh = Duration.toMillis("5 minutes")
const retryAfter = Duration.toMillis("30 seconds")

interface Address {
  readonly url: URL
  /** The address as it may be shown: without user, password, query and fragment, any of which may hold a secret. */
  readonly shown: string
  readonly authorization: Option.Option<readonly [string, string]>
}

/** A part of the address as it is meant; a sign that encodes nothing stands for itself. */
const decoded = (part: string): string => {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** An http or https address, with the credentials out of it; undefined for anything else. */
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

/** Whether the text of the settings is meant as an address. */
export const isAddress = (text: string): boolean => /^[a-z][a-z0-9+.-]*:\/\//i.test(text)

type Outcome =
  | { readonly _tag: "Text"; readonly text: string; readonly etag: string | undefined }
  /** As it was. */
  | { readonly _tag: "Same" }
  /** The server says that there is nothing any more. */
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
    return failed(`it answered with ${type.slice(0, 100)}, which is no plain text`)
  const text = yield* body(response)
  return text === ""
    ? failed("it answered with nothing")
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
        Effect.succeed(failed(refusalIn(error)?.message ?? `it could not be asked (${error.reason})`)),
      ResponseError: ({ reason }) => Effect.succeed(failed(`its answer could not be read (${reason})`))
    })
  )

  /** The address's entry; none when there is nothing any more. */
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
    // Nothing about this program's traces is a stranger's to know, and a span would hold the address with its secrets.
    const client = (yield* HttpClient.HttpClient).pipe(
      HttpClient.withTracerPropagation(false),
      HttpClient.withTracerDisabledWhen(() => true)
    )
    const parsed = addresses.map(parseAddress)
    if (parsed.includes(undefined) || addresses.length > maximumAddresses) {
      yield* Effect.logWarning(
        `of the instructions that the configuration names, only http and https addresses are asked, ${maximumAddresses} at most`
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
