/** Collects the built-in tools of every Location. */
import { Effect, Option } from "effect"
import { Skills } from "../../context/Skills.ts"
import { layer as layerFiles } from "../LocationFiles.ts"
import type { Permission } from "../../permission/Permission.ts"
import type { CurrentLocation } from "../../session/CurrentLocation.ts"
import type { ToolDefinition } from "../ToolDefinition.ts"
import type { ToolOutputStore } from "../ToolOutputStore.ts"
import { makeApplyPatch } from "./ApplyPatch.ts"
import { makeBash } from "./Bash.ts"
import { makeEdit } from "./Edit.ts"
import { makeGlob } from "./Glob.ts"
import { makeGrep } from "./Grep.ts"
import { makeRead } from "./Read.ts"
import { SessionTools } from "./SessionTools.ts"
import { makeSkill } from "./Skill.ts"
import { makeWrite } from "./Write.ts"

/** `skill`, if the host provides skills. */
const skills = Effect.flatMap(Effect.serviceOption(Skills), (found) =>
  Option.isNone(found)
    ? Effect.succeed([])
    : Effect.map(Effect.provideService(makeSkill, Skills, found.value), (tool) => [tool])
)

/** The session tools, if the host provides them. */
const sessionTools = Effect.map(
  Effect.serviceOption(SessionTools),
  Option.getOrElse(() => [])
)

export const builtins: Effect.Effect<
  ReadonlyArray<ToolDefinition>,
  never,
  CurrentLocation | Permission | ToolOutputStore
> = Effect.provide(
  Effect.map(
    Effect.all([
      Effect.all([makeRead, makeGlob, makeGrep, makeWrite, makeEdit, makeApplyPatch(), makeBash()]),
      skills,
      sessionTools
    ]),
    (tools) => tools.flat()
  ),
  layerFiles
)
