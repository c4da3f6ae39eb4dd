/**
 * System context as an algebra over looks at typed sources: what privileged text a session starts from, what changed
 * since, and what to start from anew. Pure, but for the looking itself: the registry looks, the epoch stores.
 *
 *   source   {key, schema, load, baseline, update, removed?, keep?}   its value's type is erased once it is made
 *   look     Available | Unavailable | Absent                         one source, once
 *   snapshot key -> {value, removed?}                                 what the model was told last, in stored form
 *
 * Spec: specs/context.md CX-1..CX-9 (EP-2..EP-5, EP-8).
 */
import { Effect, Either, Schema } from "effect"
import type { Agent } from "../agent/Agents.ts"
import type { SessionID } from "../Identifiers.ts"
import type { ModelInfo } from "../model/ModelResolver.ts"

/** A source's key: `area/name`. Keys are sorted, so that the order of registration does not show. */
export const SourceKey = Schema.String.pipe(Schema.pattern(/^[a-z0-9][a-z0-9._-]*\/[a-z0-9][a-z0-9._/-]*$/))

/** The turn that the sources are looked at for. */
export interface ContextTurn {
  readonly sessionID: SessionID
  /** Undefined while the session's model cannot be resolved. */
  readonly model: ModelInfo | undefined
  readonly agent: Agent
}

/** What one look at a source found. */
export type Observation<A> =
  | { readonly _tag: "Available"; readonly value: A }
  /** The source is there but could not be read now: what was told before stays (EP-4). */
  | { readonly _tag: "Unavailable" }
  /** The source has nothing to say. */
  | { readonly _tag: "Absent" }

/** The source says this. */
export const available = <A>(value: A): Observation<A> => ({ _tag: "Available", value })
/** The source could not be read now. */
export const unavailable: Observation<never> = { _tag: "Unavailable" }
/** The source has nothing to say. */
export const absent: Observation<never> = { _tag: "Absent" }

/** A value in its stored form, with its words. */
interface Told {
  readonly value: unknown
  /** The complete text, for a baseline. */
  readonly baseline: string
  /** What takes it back, rendered in advance: when it is needed the source may be gone. */
  readonly removed: string | undefined
}

/** A look, its value's type behind it. */
export type Look =
  | {
      readonly _tag: "Available"
      /** As if nothing was told before. */
      readonly first: () => Told
      /** After a stored value: the text of the change, none where the two are equal; Left when it does not decode. */
      readonly since: (stored: unknown) => Either.Either<Told & { readonly update: string | undefined }, Undecodable>
    }
  | { readonly _tag: "Unavailable"; readonly optional: boolean }
  | { readonly _tag: "Absent" }

type Undecodable = "undecodable"

/** One look at every source. */
export type Observed = ReadonlyMap<string, Look>

/** A source of privileged text: a key, and how to look. */
export interface ContextSource {
  /** `area/name`, lower case. Sources of the area `agent` are guidance and come last. */
  readonly key: string
  /** Looks once. Failing is the same as `Unavailable`, and is logged. */
  readonly load: (turn: ContextTurn) => Effect.Effect<Look, unknown>
}

/** How a source with values of type `A` is told. No text may be empty: that is a defect (EP-2). */
export interface SourceOptions<A, I> {
  readonly key: string
  /** The stored form of a value; two values that are equal by it are one. */
  readonly schema: Schema.Schema<A, I>
  readonly load: (turn: ContextTurn) => Effect.Effect<Observation<A>, unknown>
  /** The complete text of a value. */
  readonly baseline: (value: A) => string
  /** What to say when the value changed. */
  readonly update: (previous: A, current: A) => string
  /** What to say when the value is gone; where there are no words for it, that takes a fresh baseline. */
  readonly removed?: (previous: A) => string | undefined
  /** What stays of the value told before, where the look could see only a part. */
  readonly keep?: (previous: A, current: A) => A
  /** The first baseline does not wait for this source. */
  readonly optional?: boolean
}

/**
 * A typed source of context.
 *
 * @example
 * ```ts
 * const branch = SystemContext.source({
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
  const spoken = (text: string): string => {
    if (text === "") throw new Error(`context source ${options.key} rendered an empty text`)
    return text
  }
  const told = (value: A): Told => {
    const removed = options.removed?.(value)
    return {
      value: encode(value),
      baseline: spoken(options.baseline(value)),
      removed: removed === undefined ? undefined : spoken(removed)
    }
  }
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
            const update = equal(previous, current) ? undefined : spoken(options.update(previous, current))
            return { ...told(current), update }
          }
        })
    }
  }
  return { key: options.key, load: (turn) => Effect.map(options.load(turn), look) }
}

const TextValue = Schema.Struct({ text: Schema.String, removed: Schema.optionalWith(Schema.String, { exact: true }) })
/** What a source of plain text says: the text, and what takes it back where words can. */
export type TextValue = typeof TextValue.Type

/** A plain text; `removed` is what to tell the model when the source no longer says it. Empty text is nothing to say. */
export const text = (value: string, removed?: string): Observation<TextValue> =>
  value === "" ? absent : available({ text: value, ...(removed === undefined ? {} : { removed }) })

/** A source of plain text, told in full again whenever it changes. */
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

/** What the model was last told, per source, in stored form; `removed` is the revocation, rendered in advance. */
export const Snapshot = Schema.Record({
  key: Schema.String,
  value: Schema.Struct({ value: Schema.Unknown, removed: Schema.optionalWith(Schema.String, { exact: true }) })
})
export type Snapshot = typeof Snapshot.Type

/** What a session is shown first. */
export interface Ready {
  readonly _tag: "Ready"
  readonly baseline: string
  readonly snapshot: Snapshot
}

/** A baseline has to wait for these sources. */
export interface Blocked {
  readonly _tag: "Blocked"
  readonly keys: ReadonlyArray<string>
}

/** Sources by key; guidance of the agent after all others (EP-2). */
const inOrder = (keys: Iterable<string>): ReadonlyArray<string> => {
  const rank = (key: string) => (key.startsWith("agent/") ? 1 : 0)
  return [...keys].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0))
}

const kept = ({ removed, value }: Told) => ({ value, ...(removed === undefined ? {} : { removed }) })

const join = (texts: ReadonlyArray<string>) => texts.join("\n\n")

/** A look in full, with what stays of the value told before. */
const inFull = (look: Extract<Look, { readonly _tag: "Available" }>, before: Snapshot[string] | undefined): Told =>
  before === undefined ? look.first() : Either.getOrElse(look.since(before.value), look.first)

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

/** A fresh baseline in place of an earlier one. It waits for every source that the model was told of (EP-8). */
export const replace = (observed: Observed, snapshot: Snapshot): Ready | Blocked =>
  render(observed, snapshot, (key, look) => look._tag === "Unavailable" && Object.hasOwn(snapshot, key))

export type Reconciled =
  | { readonly _tag: "Unchanged" }
  | { readonly _tag: "Updated"; readonly text: string; readonly snapshot: Snapshot }
  /** Something changed that cannot be told in words: this is the baseline from now on. */
  | { readonly _tag: "Replaced"; readonly baseline: string; readonly snapshot: Snapshot }

/**
 * What to tell the model about the sources that changed since the snapshot, in one message (EP-4, EP-5). What has no
 * words needs a fresh baseline; while that has to wait, it stays as it was told, and the rest is told.
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
  return said.length === 0
    ? { _tag: "Unchanged" }
    : { _tag: "Updated", text: join(said), snapshot: Object.fromEntries(next) }
}
