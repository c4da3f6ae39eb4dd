/** Collects the built-in tools of every Location. */
import { Effect, Option } from "effect"
import { Skills } from "@daybook/core/context/Skills"
import type { Builtins } from "@daybook/core/tool/ToolRegistry"
import { layer as layerFiles } from "@daybook/core/workspace/LocationFiles"
import { makeApplyPatch } from "./ApplyPatch.ts"
import { makeBash } from "./Bash.ts"
import { makeEdit } from "./Edit.ts"
import { type FetchOptions, makeFetchTool } from "./Fetch.ts"
import { makeGlob } from "./Glob.ts"
import { makeGrep } from "./Grep.ts"
import { makeRead } from "./Read.ts"
import { makeSkill } from "./Skill.ts"
import { makeSearchTool, type SearchProvider } from "./WebSearch.ts"
import { makeWrite } from "./Write.ts"

const skills = Effect.flatMap(Effect.serviceOption(Skills), (found) =>
  Option.isNone(found)
    ? Effect.succeed([])
    : Effect.map(Effect.provideService(makeSkill, Skills, found.value), (tool) => [tool])
)

/** The tools for files, search, commands and skills. */
export const builtins: Builtins = Effect.provide(
  Effect.map(
    Effect.all([Effect.all([makeRead, makeGlob, makeGrep, makeWrite, makeEdit, makeApplyPatch(), makeBash()]), skills]),
    (tools) => tools.flat()
  ),
  layerFiles
)

export type { SearchProvider }

/** What the host allows the tools that reach the web. */
export interface WebOptions extends FetchOptions {
  /** The search engine of the tool `search`, which is absent without one. */
  readonly search?: SearchProvider
}

/**
 * The same, and `fetch`, which reads the web, and `search` if there is a search engine: an application that wants them
 * says so.
 *
 * @example
 * ```ts
 * import { BuiltinTools, Daybook } from "@daybook/embedded"
 *
 * export const runtime = Daybook.layer({ filename: "app.sqlite", builtins: BuiltinTools.withFetch() })
 * ```
 */
export const withFetch = ({ search, ...options }: WebOptions = {}): Builtins =>
  Effect.map(
    Effect.all([
      builtins,
      makeFetchTool(options),
      search === undefined ? Effect.succeed([]) : Effect.map(makeSearchTool(search), (tool) => [tool])
    ]),
    ([tools, fetch, found]) => [...tools, fetch, ...found]
  )
