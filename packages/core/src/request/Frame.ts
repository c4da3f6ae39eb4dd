/**
 * The part of a request that is not history: system texts, tools and settings. It is written down when it changes, and
 * only as far as it changed, so that what any turn was shown can be shown again. Pure. Spec: RQ-30..RQ-33.
 */
import { createHash } from "node:crypto"
import { draft, type EventOfType } from "../events/SessionEvents.ts"
import type { JsonRecord } from "../session/Schemas.ts"

/** A tool as the model is told of it. */
export interface FramedTool {
  readonly name: string
  readonly description?: string
  readonly parameters: JsonRecord
}

export interface Frame {
  /** The agent's prompt or the base instructions, then the baseline; none is empty. */
  readonly system: ReadonlyArray<string>
  /** System messages up to this place are contained in the baseline. */
  readonly baselineSeq: number
  readonly tools: ReadonlyArray<FramedTool>
  /** What was asked of the model beside the prompt: tool choice, temperature and so on; headers by name only. And its window. */
  readonly settings: JsonRecord
}

/** Before the first request. */
export const noFrame: Frame = { system: [], baselineSeq: -1, tools: [], settings: {} }

const hashed = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("base64url")

/** Definitions do not change while they are offered: each is written as JSON once. */
const written = new WeakMap<FramedTool, string>()

const json = (tool: FramedTool): string => {
  const before = written.get(tool)
  if (before !== undefined) return before
  const text = JSON.stringify([tool.name, tool.description ?? "", tool.parameters])
  written.set(tool, text)
  return text
}

/** Names a frame by its content. */
export const hashOf = ({ baselineSeq, settings, system, tools }: Frame): string =>
  hashed([system, baselineSeq, tools.map(json), settings])

const sameJson = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/** The event that leads from one frame to the next. Without the one before, all of it. */
export const framed = (next: Frame, hash: string, before: Frame | undefined) => {
  const known = new Set((before?.tools ?? []).map(json))
  const defined = next.tools.filter((tool) => !known.has(json(tool)))
  const offered = next.tools.map(({ name }) => name)
  const sameTools = defined.length === 0 && sameJson(offered, before?.tools.map(({ name }) => name) ?? [])
  return draft("session.next.request.framed", {
    hash,
    ...(before !== undefined && sameJson(before.system, next.system) ? {} : { system: next.system }),
    ...(before?.baselineSeq === next.baselineSeq ? {} : { baselineSeq: next.baselineSeq }),
    ...(before !== undefined && sameTools ? {} : { tools: { offered, defined } }),
    ...(before !== undefined && sameJson(before.settings, next.settings) ? {} : { settings: next.settings })
  })
}

/** The frame after an event: what the event does not name stays, and tools that are offered again keep their form. */
export interface Folded {
  readonly frame: Frame
  /** Every definition so far, by name. */
  readonly known: ReadonlyMap<string, FramedTool>
}

export const nothingFolded: Folded = { frame: noFrame, known: new Map() }

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
