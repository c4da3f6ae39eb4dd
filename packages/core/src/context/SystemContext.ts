/**
 * System context as an algebra over observations: what privileged text a session starts from, and what changed since.
 * Pure: sources are observed by the registry, the outcome is stored by the epoch. Sources are texts for now; the
 * snapshot keeps what was shown per source, and the words that would take it back. Spec: EX-C1..EX-C4 (EP-2..EP-5).
 */
import { Schema } from "effect"

/** A source's key: `area/name`. Keys are sorted, so that the order of registration does not show. */
export const SourceKey = Schema.String.pipe(Schema.pattern(/^[a-z0-9][a-z0-9._-]*\/[a-z0-9][a-z0-9._/-]*$/))

/** What one look at a source found. */
export type Observation =
  | { readonly _tag: "Text"; readonly text: string; readonly removed?: string | undefined }
  /** The source is there but could not be read now: what was shown before stays (EP-4). */
  | { readonly _tag: "Unavailable" }
  /** The source has nothing to say. */
  | { readonly _tag: "Absent" }

/** The source says this; `removed` is what to tell the model when it no longer does. */
export const text = (value: string, removed?: string): Observation => ({ _tag: "Text", text: value, removed })
/** The source could not be read now. */
export const unavailable: Observation = { _tag: "Unavailable" }
/** The source has nothing to say. */
export const absent: Observation = { _tag: "Absent" }

/** One look at every source. */
export type Observed = ReadonlyMap<string, Observation>

/** What the model was last told, per source; `removed` is the revocation, rendered in advance. */
export const Snapshot = Schema.Record({
  key: Schema.String,
  value: Schema.Struct({ value: Schema.String, removed: Schema.optionalWith(Schema.String, { exact: true }) })
})
export type Snapshot = typeof Snapshot.Type

export type Initialized =
  | { readonly _tag: "Ready"; readonly baseline: string; readonly snapshot: Snapshot }
  | { readonly _tag: "Blocked"; readonly keys: ReadonlyArray<string> }

const sorted = (observed: Observed) => [...observed].sort(([a], [b]) => (a < b ? -1 : 1))

const entry = (observation: Extract<Observation, { readonly _tag: "Text" }>) => ({
  value: observation.text,
  ...(observation.removed === undefined ? {} : { removed: observation.removed })
})

/** The first baseline: every source's text in key order. It needs one complete observation (EP-3). */
export const initialize = (observed: Observed): Initialized => {
  const blocked = sorted(observed).flatMap(([key, { _tag }]) => (_tag === "Unavailable" ? [key] : []))
  if (blocked.length > 0) return { _tag: "Blocked", keys: blocked }
  const shown = sorted(observed).flatMap(([key, observation]) =>
    observation._tag === "Text" ? [[key, entry(observation)] as const] : []
  )
  return {
    _tag: "Ready",
    baseline: shown.map(([, { value }]) => value).join("\n\n"),
    snapshot: Object.fromEntries(shown)
  }
}

export type Reconciled =
  | { readonly _tag: "Unchanged" }
  | { readonly _tag: "Updated"; readonly text: string; readonly snapshot: Snapshot }
  /** Something went that cannot be revoked in words: a fresh baseline is due. */
  | { readonly _tag: "Replace" }

/** What to tell the model about the sources that changed since the snapshot, in one message (EP-4, EP-5). */
export const reconcile = (observed: Observed, snapshot: Snapshot): Reconciled => {
  const next: Record<string, Snapshot[string]> = {}
  const said: Array<string> = []
  for (const key of [...new Set([...Object.keys(snapshot), ...observed.keys()])].sort()) {
    const before = snapshot[key]
    const now = observed.get(key) ?? absent
    if (now._tag === "Unavailable") {
      if (before !== undefined) next[key] = before
    } else if (now._tag === "Text") {
      next[key] = entry(now)
      if (before === undefined) said.push(now.text)
      else if (before.value !== now.text) said.push(`This replaces what was said before:\n${now.text}`)
    } else if (before !== undefined) {
      if (before.removed === undefined) return { _tag: "Replace" }
      said.push(before.removed)
    }
  }
  return said.length === 0 ? { _tag: "Unchanged" } : { _tag: "Updated", text: said.join("\n\n"), snapshot: next }
}
