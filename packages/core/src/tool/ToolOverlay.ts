/**
 * Keeps tools by name in layers: each registration overlays earlier ones, and closing its scope removes only that
 * layer, wherever it is by then (TO-15). Used by `ToolRegistry` and `HostTools`.
 */
import type { Tool } from "@effect/ai"
import { Effect, type Scope } from "effect"
import type { ToolDefinition } from "./ToolDefinition.ts"
import { wireTool } from "./WireTool.ts"

/** One registration of one tool. Its identity shows whether a tool is still the one that was offered. */
export interface ToolEntry {
  readonly definition: ToolDefinition
  readonly wire: Tool.Any
}

export const entryOf = (definition: ToolDefinition): ToolEntry => ({ definition, wire: wireTool(definition.tool) })

/** Layered registrations, by name. */
export interface ToolOverlay {
  readonly register: (definitions: ReadonlyArray<ToolDefinition>) => Effect.Effect<void, never, Scope.Scope>
  readonly get: (name: string) => ToolEntry | undefined
  readonly names: () => Iterable<string>
  /** Adds a source of explanations for missing tools, until the scope closes. */
  readonly explain: (source: Explanation) => Effect.Effect<void, never, Scope.Scope>
  /** Why a tool is missing, if known. */
  readonly whyMissing: Explanation
}

/** Why the tool with this name is missing; undefined if unknown. */
export type Explanation = (name: string) => string | undefined

export const makeToolOverlay = (): ToolOverlay => {
  const stacks = new Map<string, ReadonlyArray<ToolEntry>>()
  const explanations = new Set<Explanation>()
  const add = (entry: ToolEntry) => {
    const { name } = entry.definition.tool
    stacks.set(name, [...(stacks.get(name) ?? []), entry])
  }
  const remove = (entry: ToolEntry) => {
    const { name } = entry.definition.tool
    const rest = (stacks.get(name) ?? []).filter((other) => other !== entry)
    if (rest.length === 0) stacks.delete(name)
    else stacks.set(name, rest)
  }
  return {
    register: (definitions) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => {
            const entries = definitions.map(entryOf)
            entries.forEach(add)
            return entries
          }),
          (entries) => Effect.sync(() => entries.forEach(remove))
        )
      ),
    get: (name) => stacks.get(name)?.at(-1),
    names: () => stacks.keys(),
    explain: (source) =>
      Effect.asVoid(
        Effect.acquireRelease(
          Effect.sync(() => explanations.add(source)),
          () => Effect.sync(() => explanations.delete(source))
        )
      ),
    whyMissing: (name) => {
      for (const source of explanations) {
        const reason = source(name)
        if (reason !== undefined) return reason
      }
      return undefined
    }
  }
}
