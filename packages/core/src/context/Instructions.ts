/**
 * Builds context sources from instructions: one source per class, whose value is the list of its files with their
 * texts. An update contains only new or changed files; after a removal, the complete remaining list replaces the
 * earlier one. Spec: CX-27, CX-28, CX-38..CX-42, CX-48 in specs/context.md (EP-7, EP-12).
 */
import * as fs from "node:fs/promises"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Clock, Duration, Effect, Option, Schema, Stream } from "effect"
import { refusalIn, safeFetch } from "../http/SameOrigin.ts"
import { quotedPath } from "../support/TextFile.ts"
import { warnOnce } from "@daybook/log/support/LoggedOnce"
import { decodeInstructions, type InstructionReader, maximumBytes } from "./InstructionFile.ts"
import {
  absent,
  available,
  type ContextSource,
  type ContextTurn,
  type Observation,
  source,
  unavailable
} from "./SystemContext.ts"

/** One file or address. `text` is absent while it cannot be loaded. */
export const Entry = Schema.Struct({
  path: Schema.String,
  text: Schema.optionalWith(Schema.String, { exact: true })
})
export type Entry = typeof Entry.Type

const Instructions = Schema.Array(Entry)
export type Instructions = typeof Instructions.Type

/** Maximum characters of one class, texts and paths together: room for one long file. */
export const maximumTotal = maximumBytes

/** Maximum files that are listed individually as not shown. */
const maximumNamed = 32

/** A placeholder for a text that is not shown; `more` says what else is omitted with it. */
export const notShown = (path: string, why: string, more = ""): Entry => ({
  path,
  text: `[Not shown${more}: ${why}.]`
})

/** Replaces texts that do not fit by placeholders. */
export const bounded = (entries: Instructions): Instructions => {
  const shown: Array<Entry> = []
  let room = maximumTotal
  let named = 0
  for (const [index, entry] of entries.entries()) {
    // Capped, so that a text that fills the room is not displaced by its truncation note.
    const size = Math.min(entry.path.length + (entry.text?.length ?? 0), maximumTotal)
    if (size <= room) {
      room -= size
      shown.push(entry)
      continue
    }
    const left = entries.length - index - 1
    const last = ++named === maximumNamed && left > 0
    const why = `instructions of this kind may have ${maximumTotal} characters together`
    shown.push(notShown(entry.path, why, last ? `, nor are ${left} after it` : ""))
    if (last) break
  }
  return shown
}

const block = ({ path, text }: Entry): string =>
  text === undefined
    ? `Instructions are expected at ${quotedPath(path)}, but could not be loaded so far. They may follow later.`
    : `Instructions from ${quotedPath(path)}:\n${text}`

const blocks = (entries: Instructions) => entries.map(block).join("\n\n")

const named = (entries: Instructions) => entries.map(({ path }) => quotedPath(path)).join(", ")

/** The text of an update. `what` names the class: "the project's instructions". Pure. */
export const describeChange = (what: string, previous: Instructions, current: Instructions): string => {
  const before = new Map(previous.map(({ path, text }) => [path, text]))
  const now = new Set(current.map(({ path }) => path))
  const gone = previous.filter(({ path }) => !now.has(path))
  const stayed = current.filter(({ path }) => before.has(path))
  const order = previous.flatMap(({ path }) => (now.has(path) ? [path] : []))
  // Only files added at the end leave the precedence of the others unchanged.
  const inOrder = current.every(({ path }, index) => (index < order.length ? order[index] === path : !before.has(path)))
  if (gone.length > 0 || !inOrder) {
    const lost = gone.length === 0 ? "" : ` What came from ${named(gone)} no longer holds.`
    return `From here on, ${what} are the following and nothing else; they supersede all that were given before.${lost}\n\n${blocks(current)}`
  }
  const changed = stayed.filter(({ path, text }) => before.get(path) !== text)
  const added = current.filter(({ path }) => !before.has(path))
  return [
    ...(changed.length === 0
      ? []
      : [`Of ${what}, these changed; their new text supersedes the earlier one.\n\n${blocks(changed)}`]),
    ...(added.length === 0 ? [] : [`To ${what} these are added; all earlier ones still hold.\n\n${blocks(added)}`])
  ].join("\n\n")
}

const capital = (what: string) => `${what.slice(0, 1).toUpperCase()}${what.slice(1)}`

/** An entry that cannot be loaded now keeps the text that was told before. */
const keepTexts = (previous: Instructions, current: Instructions): Instructions => {
  const texts = new Map(previous.map(({ path, text }) => [path, text]))
  return current.map((entry) => {
    const told = texts.get(entry.path)
    return entry.text === undefined && told !== undefined ? { path: entry.path, text: told } : entry
  })
}

/** A context source for one class of instructions. An empty list is absent. `load` must return a `bounded` list. */
export const instructionSource = (options: {
  readonly key: string
  /** Names the class, in the plural: "the project's instructions". */
  readonly what: string
  /** A sentence about the class, such as its order of precedence. */
  readonly rule: string
  readonly load: (turn: ContextTurn) => Effect.Effect<Observation<Instructions>, unknown>
}): ContextSource =>
  source({
    key: options.key,
    schema: Instructions,
    load: (turn) =>
      Effect.map(options.load(turn), (seen) => {
        if (seen._tag !== "Available") return seen
        return seen.value.length === 0 ? absent : seen
      }),
    baseline: (entries) => `${capital(options.what)} follow. ${options.rule}\n\n${blocks(entries)}`,
    update: (previous, current) => describeChange(options.what, previous, current),
    removed: (previous) =>
      `${capital(options.what)} are gone: nothing that came from ${named(previous)} holds any longer.`,
    keep: keepTexts
  })

/** A place for instructions: the first of its files that has a text is used. */
export interface Candidate {
  readonly files: ReadonlyArray<string>
  /** The canonical folder that must contain the real path. */
  readonly within?: string
  /** Returns why a file must not be read; then only its name is shown. */
  readonly withheld?: (file: string) => string | undefined
}

const isThere = (path: string) =>
  Effect.promise(() =>
    fs.lstat(path).then(
      (stats) => !stats.isDirectory(),
      () => false
    )
  )

/** Reads the candidates in order, within the room. An unreadable file makes the result unavailable (EP-11). */
export const loadFiles = Effect.fnUntraced(function* (reader: InstructionReader, candidates: ReadonlyArray<Candidate>) {
  const entries: Array<Entry> = []
  const seen = new Set<string>()
  for (const { files, withheld, within } of candidates) {
    for (const path of files) {
      const why = withheld?.(path)
      if (why !== undefined) {
        if (yield* isThere(path)) entries.push(notShown(path, why))
        continue
      }
      const found = yield* reader.read(path, within)
      if (found._tag === "Unreadable") return unavailable
      if (found._tag !== "Found") continue
      // Two names of the same file count once.
      if (!seen.has(found.file.real)) entries.push({ path, text: found.file.text })
      seen.add(found.file.real)
      break
    }
  }
  return available(bounded(entries))
})

// Instructions from web addresses of the host: while an address fails, its last text holds; an address that never
// answered is listed without a text.

export interface RemoteOptions {
  /** Timeout per address, from the request to the last byte. */
  readonly timeout?: Duration.DurationInput
}

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
