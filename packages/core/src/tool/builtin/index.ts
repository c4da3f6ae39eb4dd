/** The tools that every Location has. */
import { Effect } from "effect"
import { layer as layerFiles } from "../LocationFiles.ts"
import type { Permission } from "../../permission/Permission.ts"
import type { CurrentLocation } from "../../session/CurrentLocation.ts"
import type { ToolDefinition } from "../ToolDefinition.ts"
import type { ToolOutputStore } from "../ToolOutputStore.ts"
import { makeBash } from "./Bash.ts"
import { makeEdit } from "./Edit.ts"
import { makeGlob } from "./Glob.ts"
import { makeGrep } from "./Grep.ts"
import { makeRead } from "./Read.ts"
import { makeWrite } from "./Write.ts"

export const builtins: Effect.Effect<
  ReadonlyArray<ToolDefinition>,
  never,
  CurrentLocation | Permission | ToolOutputStore
> = Effect.provide(Effect.all([makeRead, makeGlob, makeGrep, makeWrite, makeEdit, makeBash()]), layerFiles)
