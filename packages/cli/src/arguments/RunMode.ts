/**
 * What a run may do besides the rules of its agent: `--allow`, `--accept-edits` and `--read-only`. A mode counts in the
 * process that it is given to. Pure but for the refusals. Spec: CL-770..CL-774 in specs/cli.md.
 */
import { Context, Effect } from "effect"
import type { Agent } from "@daybook/core/domain/Agent"
import { matches, type Rule } from "@daybook/core/domain/Rule"
import { UsageError } from "../support/Errors.ts"
import * as Flags from "./Flags.ts"

/** What the person gave. */
export interface RunMode {
  /** Rules that follow those of every agent. */
  readonly allow: ReadonlyArray<Rule>
  readonly readOnly: boolean
}

const none: RunMode = { allow: [], readOnly: false }

/** The mode of this process. */
export class CurrentRunMode extends Context.Reference<CurrentRunMode>()("@daybook/cli/RunMode", {
  defaultValue: () => none
}) {}

/** Whether a mode changes nothing. */
export const isNone = ({ allow, readOnly }: RunMode): boolean => allow.length === 0 && !readOnly

/** The mode in a word or two; undefined for none. */
export const inWords = ({ allow, readOnly }: RunMode): string | undefined => {
  if (readOnly) return "read-only"
  if (allow.length === 0) return undefined
  return `allows ${allow.map(({ permission, resource }) => (resource === "*" ? permission : `${permission} ${resource}`)).join(", ")}`
}

/** Permissions of tools that change nothing outside the session. */
const looking = ["read", "glob", "grep", "skill", "todo", "question", "external_directory", "fetch", "search"]

/** Permissions of the other built-in tools. */
const acting = ["edit", "bash", "task"]

/** Reads `edit,bash git *`. A comma within a pattern has a backslash. */
const parse = (text: string): Effect.Effect<ReadonlyArray<Rule>, string> =>
  Effect.forEach(text.split(/(?<!\\),/), (part) => {
    const [, permission = "", resource = ""] = /^(\S+)\s*(.*)$/s.exec(part.trim().replaceAll("\\,", ",")) ?? []
    // Tools of MCP servers are named SERVER_TOOL.
    const isKnown = looking.includes(permission) || acting.includes(permission) || /[*?_]/.test(permission)
    return isKnown
      ? Effect.succeed<Rule>({ permission, resource: resource === "" ? "*" : resource, verdict: "allow" })
      : Effect.fail(
          `${[...acting, ...looking].join(", ")} or SERVER_TOOL, each with a pattern after a space, or without`
        )
  })

/** Options of every verb that runs a session. */
export const flags = {
  allow: Flags.repeated(
    "allow",
    "RULES",
    "allow these for this run without asking: 'edit,bash git *'; may be repeated",
    parse
  ),
  acceptEdits: Flags.toggle("accept-edits", "allow every edit of a file of the folder in this run"),
  readOnly: Flags.toggle("read-only", "refuse every edit, command and other change in this run")
}

/** What the options give. */
export const read = (given: {
  readonly allow: ReadonlyArray<ReadonlyArray<Rule>>
  readonly acceptEdits: boolean
  readonly readOnly: boolean
}): Effect.Effect<RunMode, UsageError> => {
  const edits: ReadonlyArray<Rule> = given.acceptEdits ? [{ permission: "edit", resource: "*", verdict: "allow" }] : []
  const allow = [...edits, ...given.allow.flat()]
  return given.readOnly && allow.length > 0
    ? new UsageError({ message: "--read-only allows no change: do not combine it with --allow or --accept-edits" })
    : Effect.succeed({ allow, readOnly: given.readOnly })
}

/** The rules of a run that changes nothing: those of the agent for looking, and no other. */
const readOnlyRules = (rules: ReadonlyArray<Rule>): ReadonlyArray<Rule> => [
  { permission: "*", resource: "*", verdict: "deny" },
  ...looking.flatMap((permission): ReadonlyArray<Rule> => [
    { permission, resource: "*", verdict: "ask" },
    ...rules.filter((rule) => matches(rule.permission, permission)).map((rule) => ({ ...rule, permission }))
  ])
]

/** The agent as a run of this mode uses it. */
export const adjusted =
  ({ allow, readOnly }: RunMode) =>
  (agent: Agent): Agent => ({
    ...agent,
    permissions: readOnly ? readOnlyRules(agent.permissions) : [...agent.permissions, ...allow]
  })
