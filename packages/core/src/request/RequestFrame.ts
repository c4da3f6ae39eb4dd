/**
 * Defines the request frame, the part of a request that is not history: system texts, tools and settings. The log stores only
 * its changes, so that any turn's request can be shown again. Pure. Spec: RQ-30..RQ-33, CX-51.
 */
import { createHash } from "node:crypto"
import { difference, type Snapshot } from "@daybook/log/domain/Snapshot"
import { draft, type EventOfType } from "@daybook/log/events/SessionEvents"
import type { FramedTool, RequestFrame } from "./ShownRequest.ts"

export { FramedTool, RequestFrame } from "./ShownRequest.ts"

/** The request frame before the first request. */
export const noFrame: RequestFrame = { system: [], baselineSeq: -1, tools: [], settings: {} }

const hashed = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("base64url")

/** Each definition is serialized once: definitions are immutable while offered. */
const written = new WeakMap<FramedTool, string>()

const json = (tool: FramedTool): string => {
  const before = written.get(tool)
  if (before !== undefined) return before
  const text = JSON.stringify([tool.name, tool.description ?? "", tool.parameters])
  written.set(tool, text)
  return text
}

export const hashOf = ({ baselineSeq, settings, system, tools }: RequestFrame): string =>
  hashed([system, baselineSeq, tools.map(json), settings])

const sameJson = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

export interface NewBaseline {
  readonly baseline: string
  readonly snapshot: Snapshot
}

/** The system texts contain the baseline, unless a hook changed it. */
const introduced = ({ baseline, snapshot }: NewBaseline, system: ReadonlyArray<string>) => {
  const index = system.indexOf(baseline)
  return { baseline: index < 0 ? baseline : index, snapshot: difference({}, snapshot, baseline) }
}

/** The event for the change from `before` to `next`, or the whole frame. A new baseline brings all system texts. */
export const framed = (next: RequestFrame, hash: string, before: RequestFrame | undefined, baseline?: NewBaseline) => {
  const known = new Set((before?.tools ?? []).map(json))
  const defined = next.tools.filter((tool) => !known.has(json(tool)))
  const offered = next.tools.map(({ name }) => name)
  const sameTools = defined.length === 0 && sameJson(offered, before?.tools.map(({ name }) => name) ?? [])
  return draft("session.next.request.framed", {
    hash,
    ...(baseline === undefined && before !== undefined && sameJson(before.system, next.system)
      ? {}
      : { system: next.system }),
    ...(baseline === undefined && before?.baselineSeq === next.baselineSeq ? {} : { baselineSeq: next.baselineSeq }),
    ...(before !== undefined && sameTools ? {} : { tools: { offered, defined } }),
    ...(before !== undefined && sameJson(before.settings, next.settings) ? {} : { settings: next.settings }),
    ...(baseline === undefined ? {} : { context: introduced(baseline, next.system) })
  })
}

/** The frame after an event. Fields absent in the event stay; a tool offered again keeps its definition. */
export interface Folded {
  readonly frame: RequestFrame
  /** All definitions so far, by name. */
  readonly known: ReadonlyMap<string, FramedTool>
}

/** The fold before the first event. */
export const nothingFolded: Folded = { frame: noFrame, known: new Map() }

/** Applies one framed event (RQ-33). */
export const fold = (
  { frame, known }: Folded,
  { data }: Pick<EventOfType<"session.next.request.framed">, "data">
): Folded => {
  const all = new Map([...known, ...(data.tools?.defined ?? []).map((tool) => [tool.name, tool] as const)])
  return {
    known: all,
    frame: {
      system: data.system ?? frame.system,
      baselineSeq: data.baselineSeq ?? frame.baselineSeq,
      tools: data.tools?.offered.flatMap((name) => all.get(name) ?? []) ?? frame.tools,
      settings: data.settings ?? frame.settings
    }
  }
}
