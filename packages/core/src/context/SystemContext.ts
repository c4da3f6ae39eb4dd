/**
 * Computes privileged text from typed sources: the text that a session starts with, updates when a source changes, and
 * a fresh baseline. Pure, except for `load`: the registry reads, the epoch stores.
 *
 *   source   {key, schema, load, baseline, update, removed?, keep?}   its value type is erased once it is made
 *   look     Available | Unavailable | Absent                         one source, read once
 *   snapshot key -> {value, removed?}                                 what the model was told last, in stored form
 *
 * Spec: CX-1..CX-9, CX-30, CX-31 in specs/context.md (EP-2..EP-5, EP-8).
 */
import { Config, Context, Effect, Either, Layer, Schema } from "effect"
import type { SessionID } from "@daybook/log/domain/Identifiers"
import type { Snapshot } from "@daybook/log/domain/Snapshot"
import type { ContextMarks } from "@daybook/log/store/ContextRows"
import type { Agent } from "../domain/Agent.ts"
import type { ModelInfo } from "../model/ModelResolver.ts"

// The host's settings for instructions and skills. Without settings, only the Location's project is read.

/** Where instructions and skills are read from (CX-30). */
export interface Settings {
  /** The user's folder, with `AGENTS.md` and `skills/`; undefined for none. */
  readonly userFolder: string | undefined
  /** More instructions: files, globs, http(s) URLs. Paths are relative to the Location; `~/` is the home directory. */
  readonly instructions: ReadonlyArray<string>
  readonly skills: ReadonlyArray<string>
  /** Whether the project's instructions and skills are read. */
  readonly projectConfig: boolean
}

/** The settings for instructions and skills; a host provides them with `layer`. */
export class ContextSettings extends Context.Tag("@daybook/core/ContextSettings")<ContextSettings, Settings>() {}

/** Options of a host; all are optional. */
export interface Options {
  readonly userFolder?: string | undefined
  readonly instructions?: ReadonlyArray<string> | undefined
  readonly skills?: ReadonlyArray<string> | undefined
  /** Default: true, unless the environment disables it. */
  readonly projectConfig?: boolean | undefined
}

const isSet = (name: string) =>
  Config.string(name).pipe(
    Config.map((value) => ["1", "true"].includes(value.trim().toLowerCase())),
    // An unset or unreadable variable disables nothing.
    Effect.orElseSucceed(() => false)
  )

const projectConfigDisabled = Effect.zipWith(
  isSet("DAYBOOK_DISABLE_PROJECT_CONFIG"),
  isSet("OPENCODE_DISABLE_PROJECT_CONFIG"),
  (ours, theirs) => ours || theirs
)

/** Settings from the host's options; DAYBOOK_DISABLE_PROJECT_CONFIG (1 or true) disables the project's. */
export const layerContextSettings = (options: Options = {}): Layer.Layer<ContextSettings> =>
  Layer.effect(
    ContextSettings,
    Effect.map(projectConfigDisabled, (disabled) => ({
      userFolder: options.userFolder,
      instructions: options.instructions ?? [],
      skills: options.skills ?? [],
      projectConfig: (options.projectConfig ?? true) && !disabled
    }))
  )

/** A source's key: `area/name`. Keys are sorted, so registration order has no effect. */
export const SourceKey = Schema.String.pipe(Schema.pattern(/^[a-z0-9][a-z0-9._-]*\/[a-z0-9][a-z0-9._/-]*$/))

export interface ContextTurn {
  readonly sessionID: SessionID
  /** Undefined while the session's model cannot be resolved. */
  readonly model: ModelInfo | undefined
  readonly agent: Agent
  /** Facts of the session's rows, if they were just read. */
  readonly marks?: ContextMarks | undefined
}

/** The result of reading a source. */
export type Observation<A> =
  | { readonly _tag: "Available"; readonly value: A }
  /** The source exists but cannot be read now; the text told before still holds (EP-4). */
  | { readonly _tag: "Unavailable" }
  /** The source has no text. */
  | { readonly _tag: "Absent" }

/** The source has this value. */
export const available = <A>(value: A): Observation<A> => ({ _tag: "Available", value })
export const unavailable: Observation<never> = { _tag: "Unavailable" }
/** The source has no text. */
export const absent: Observation<never> = { _tag: "Absent" }

/** A value in stored form, with its texts. */
interface RenderedValue {
  readonly value: unknown
  /** The complete text, for a baseline. */
  readonly baseline: string
  /** The revocation, rendered in advance: the source may be gone when it is needed. */
  readonly removed: string | undefined
}

/** The result of one read, with the value's type erased. */
export type Look =
  | {
      readonly _tag: "Available"
      /** The texts without an earlier value. */
      readonly first: () => RenderedValue
      /** The texts after a stored value; `update` is undefined if it is equal. Left if the value does not decode. */
      readonly since: (
        stored: unknown
      ) => Either.Either<RenderedValue & { readonly update: string | undefined }, Undecodable>
    }
  | { readonly _tag: "Unavailable"; readonly optional: boolean }
  | { readonly _tag: "Absent" }

type Undecodable = "undecodable"

export type Observed = ReadonlyMap<string, Look>

export interface ContextSource {
  /** `area/name`, lower case. Sources of the area `agent` are guidance and come last. */
  readonly key: string
  /** Reads once. A failure counts as `Unavailable` and is logged. */
  readonly load: (turn: ContextTurn) => Effect.Effect<Look, unknown>
}

/** How a source with values of type `A` is rendered. An empty text tells the model nothing (EP-2). */
export interface SourceOptions<A, I> {
  readonly key: string
  /** The stored form of a value; it also defines equality. */
  readonly schema: Schema.Schema<A, I>
  readonly load: (turn: ContextTurn) => Effect.Effect<Observation<A>, unknown>
  readonly baseline: (value: A) => string
  readonly update: (previous: A, current: A) => string
  readonly removed?: (previous: A) => string | undefined
  /** What to keep of the previous value if the read was partial. */
  readonly keep?: (previous: A, current: A) => A
  /** The first baseline does not wait for this source. */
  readonly optional?: boolean
}

/**
 * Builds a typed context source.
 *
 * @example
 * ```ts
 * import { SystemContext } from "@daybook/core"
 * import { Effect, Schema } from "effect"
 *
 * declare const currentBranch: Effect.Effect<string>
 *
 * export const branch = SystemContext.source({
 *   key: "acme/branch",
 *   schema: Schema.String,
 *   load: () => Effect.map(currentBranch, SystemContext.available),
 *   baseline: (name) => `The branch is ${name}.`,
 *   update: (_, name) => `The branch is ${name} now.`
 * })
 * ```
 */
export const source = <A, I>(options: SourceOptions<A, I>): ContextSource => {
  const decode = Schema.decodeUnknownEither(options.schema)
  const encode = Schema.encodeSync(options.schema)
  const equal = Schema.equivalence(options.schema)
  const told = (value: A): RenderedValue => ({
    value: encode(value),
    baseline: options.baseline(value),
    removed: options.removed?.(value)
  })
  const look = (observation: Observation<A>): Look => {
    if (observation._tag === "Absent") return observation
    if (observation._tag === "Unavailable") return { ...observation, optional: options.optional ?? false }
    return {
      _tag: "Available",
      first: () => told(observation.value),
      since: (stored) =>
        Either.mapBoth(decode(stored), {
          onLeft: (): Undecodable => "undecodable",
          onRight: (previous) => {
            const current = options.keep?.(previous, observation.value) ?? observation.value
            const update = equal(previous, current) ? undefined : options.update(previous, current)
            return { ...told(current), update }
          }
        })
    }
  }
  return { key: options.key, load: (turn) => Effect.map(options.load(turn), look) }
}

const TextValue = Schema.Struct({ text: Schema.String, removed: Schema.optionalWith(Schema.String, { exact: true }) })
/** The value of a plain-text source: its text, and an optional revocation. */
export type TextValue = typeof TextValue.Type

/** A plain text; `removed` is the text that revokes it later. An empty text is absent. */
export const text = (value: string, removed?: string): Observation<TextValue> =>
  value === "" ? absent : available({ text: value, ...(removed === undefined ? {} : { removed }) })

/** A source of plain text, told in full whenever it changes. */
export const textSource = (
  key: string,
  load: (turn: ContextTurn) => Effect.Effect<Observation<TextValue>, unknown>
): ContextSource =>
  source({
    key,
    schema: TextValue,
    load,
    baseline: (value) => value.text,
    update: (_, value) => `This replaces what was said before:\n${value.text}`,
    removed: (value) => value.removed
  })

/** The baseline of a session and its snapshot. */
export interface Ready {
  readonly _tag: "Ready"
  readonly baseline: string
  readonly snapshot: Snapshot
}

/** The baseline must wait for these sources. */
export interface Blocked {
  readonly _tag: "Blocked"
  readonly keys: ReadonlyArray<string>
}

/** Sorts keys; guidance of the agent comes last (EP-2). */
const inOrder = (keys: Iterable<string>): ReadonlyArray<string> => {
  const rank = (key: string) => (key.startsWith("agent/") ? 1 : 0)
  return [...keys].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0))
}

const kept = ({ removed, value }: RenderedValue) => ({ value, ...(removed === undefined ? {} : { removed }) })

const join = (texts: ReadonlyArray<string>) => texts.filter((text) => text !== "").join("\n\n")

/** The full text of a look, merged with the earlier value. */
const inFull = (
  look: Extract<Look, { readonly _tag: "Available" }>,
  before: Snapshot[string] | undefined
): RenderedValue => (before === undefined ? look.first() : Either.getOrElse(look.since(before.value), look.first))

const render = (
  observed: Observed,
  snapshot: Snapshot,
  waits: (key: string, look: Look) => boolean
): Ready | Blocked => {
  const keys = inOrder(observed.keys())
  const blocked = keys.filter((key) => waits(key, observed.get(key) ?? absent))
  if (blocked.length > 0) return { _tag: "Blocked", keys: blocked }
  const shown = keys.flatMap((key) => {
    const look = observed.get(key)
    return look?._tag === "Available" ? [[key, inFull(look, snapshot[key])] as const] : []
  })
  return {
    _tag: "Ready",
    baseline: join(shown.map(([, { baseline }]) => baseline)),
    snapshot: Object.fromEntries(shown.map(([key, told]) => [key, kept(told)]))
  }
}

/** The first baseline: every source's text in order. It needs one complete look (EP-3). */
export const initialize = (observed: Observed): Ready | Blocked =>
  render(observed, {}, (_, look) => look._tag === "Unavailable" && !look.optional)

/** A fresh baseline in place of an earlier one. It waits for every source in the snapshot (EP-8). */
export const replace = (observed: Observed, snapshot: Snapshot): Ready | Blocked =>
  render(observed, snapshot, (key, look) => look._tag === "Unavailable" && Object.hasOwn(snapshot, key))

/** The result of `reconcile`: nothing to tell, one update message, or a fresh baseline. */
export type Reconciled =
  | { readonly _tag: "Unchanged" }
  | { readonly _tag: "Updated"; readonly text: string; readonly snapshot: Snapshot }
  /** A change has no update text: this becomes the baseline. */
  | { readonly _tag: "Replaced"; readonly baseline: string; readonly snapshot: Snapshot }

/**
 * Computes one update message for all sources that changed since the snapshot (EP-4, EP-5). A change without a text
 * needs a fresh baseline. While that is blocked, the source keeps its snapshot, and the other changes are told.
 */
export const reconcile = (observed: Observed, snapshot: Snapshot): Reconciled => {
  const next: Array<readonly [string, Snapshot[string]]> = []
  const said: Array<string> = []
  let wordless = false
  for (const key of inOrder(new Set([...Object.keys(snapshot), ...observed.keys()]))) {
    const before = Object.hasOwn(snapshot, key) ? snapshot[key] : undefined
    const look = observed.get(key) ?? absent
    if (look._tag === "Available" && before === undefined) {
      const told = look.first()
      said.push(told.baseline)
      next.push([key, kept(told)])
    } else if (look._tag === "Available" && before !== undefined) {
      const change = look.since(before.value)
      if (Either.isLeft(change)) {
        wordless = true
        next.push([key, before])
      } else if (change.right.update === undefined) {
        next.push([key, before])
      } else {
        said.push(change.right.update)
        next.push([key, kept(change.right)])
      }
    } else if (look._tag === "Unavailable") {
      if (before !== undefined) next.push([key, before])
    } else if (before !== undefined) {
      if (before.removed === undefined) {
        wordless = true
        next.push([key, before])
      } else {
        said.push(before.removed)
      }
    }
  }
  const fresh = wordless ? replace(observed, snapshot) : undefined
  if (fresh?._tag === "Ready") return { ...fresh, _tag: "Replaced" }
  // A change without a word is told with the next change: until then the snapshot keeps the value that was told.
  const text = join(said)
  return text === "" ? { _tag: "Unchanged" } : { _tag: "Updated", text, snapshot: Object.fromEntries(next) }
}
