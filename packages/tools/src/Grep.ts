/** The tool `grep`: finds lines of text files that match a regular expression. Spec: TO-44..TO-46. */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import * as Tool from "@effect/ai/Tool"
import { Effect, Schema } from "effect"
import { decidingRule, type Rule } from "@daybook/core/domain/Rule"
import { Permission } from "@daybook/core/permission/Permission"
import { guardsOf, namesGuards } from "@daybook/core/permission/ProtectedPaths"
import { quotedPath } from "@daybook/core/support/TextFile"
import { define } from "@daybook/core/tool/ToolDefinition"
import { spellings, type Target, tryFile } from "@daybook/core/workspace/FileFailure"
import { LocationFiles } from "@daybook/core/workspace/LocationFiles"
import { linesInPage } from "@daybook/core/workspace/TextPage"
import { checkGlob, listFiles } from "./Glob.ts"
import { readExpression, searchLimits, searchLines } from "./LineSearch.ts"
import { optional } from "@daybook/log/support/Optional"

const GrepTool = Tool.make("grep", {
  description:
    `Finds lines of text files that match a regular expression, as ripgrep takes it, at most ${searchLimits.matches}. ` +
    "Skips binary files and files that .gitignore names.",
  parameters: {
    pattern: Schema.NonEmptyString.annotations({
      description: "Regular expression, matched line by line; one with \\n, or (?s) at its start, matches across lines"
    }),
    path: optional(Schema.NonEmptyString).annotations({
      description: "Folder or file to search, relative to the working directory; by default the working directory"
    }),
    include: optional(Schema.NonEmptyString).annotations({
      description: `Glob of file names, such as "*.ts" or "src/**/*.ts"`
    }),
    ignoreCase: optional(Schema.Boolean).annotations({ description: "Whether upper and lower case are the same" }),
    includeIgnored: optional(Schema.Boolean).annotations({
      description: "Whether to search files that .gitignore names too"
    })
  },
  success: Schema.Struct({
    path: Schema.String,
    count: Schema.Int,
    files: Schema.Int,
    /** Whether there may be more matches than are shown. */
    more: Schema.Boolean,
    notices: Schema.Array(Schema.String),
    lines: Schema.Array(Schema.String)
  })
})

/** The folder to search, its files, and their display names; a single file is searched in its parent folder. */
const candidates = Effect.fnUntraced(function* (
  files: LocationFiles["Type"],
  target: Target,
  include: string,
  includeIgnored: boolean
) {
  const stats = yield* tryFile("search", target.resource, () => fs.lstat(target.real))
  if (!stats.isDirectory()) {
    const [folder, name] = [path.dirname(target.real), path.basename(target.real)]
    return { folder, files: [name], more: false, resourceOf: () => target.resource }
  }
  const listing = yield* listFiles({ folder: target.real, pattern: include, includeIgnored })
  yield* files.recheck(target.real, target.root)
  return {
    folder: target.real,
    ...listing,
    resourceOf: (file: string) => path.posix.join(target.resource, file)
  }
})

/** A glob without `/` matches file names in every folder, as in other search tools. */
const atAnyDepth = (include: string) => (include.includes("/") ? include : `**/${include}`)

const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`

/** Whether a file is searched: not if a rule denies `read`, and not if it is protected beyond what was allowed. */
const judging = (rules: ReadonlyArray<Rule>, searched: Target) => {
  const settled = new Set(guardsOf("grep", searched.resource).map(({ segment }) => segment))
  return (resource: string) => {
    const rule = decidingRule(rules, "read", resource)
    if (rule?.verdict === "deny") return "denied"
    const guards = guardsOf("read", resource).filter(({ segment }) => !settled.has(segment))
    if (guards.length === 0) return "searched"
    return rule?.verdict === "allow" && namesGuards(rule.resource, resource, guards) ? "searched" : "protected"
  }
}

/** `grep` in the current Location. Files that a rule denies to `read` are not searched. */
export const makeGrep = Effect.gen(function* () {
  const files = yield* LocationFiles
  const permission = yield* Permission
  return define(GrepTool, {
    readOnly: true,
    handler: Effect.fn("Tool.grep")(function* (
      { ignoreCase = false, include = "**/*", includeIgnored = false, path: name = ".", pattern },
      call
    ) {
      yield* checkGlob(include)
      const expression = yield* readExpression(pattern, ignoreCase)
      const target = yield* files.resolve(call.sessionID, name)
      const relative = yield* files.relativeGlob(target, atAnyDepth(include))
      yield* permission.authorize({
        ...call,
        permission: "grep",
        subject: Effect.succeed({ type: "read", path: target.resource, pattern }),
        resources: [target.resource],
        spelled: spellings([target]),
        title: `Search ${target.resource} for ${pattern.slice(0, 500)}`
      })
      const found = yield* candidates(files, target, relative, includeIgnored)
      const { resourceOf } = found
      const judge = judging(call.agent.permissions, target)
      const verdicts = found.files.map((file) => judge(resourceOf(file)))
      const allowed = found.files.filter((_, at) => verdicts[at] === "searched")
      const result = yield* searchLines({ folder: found.folder, files: allowed, pattern: expression })
      const all = result.matches.map(({ file, line, text }) => `${quotedPath(resourceOf(file))}:${line}: ${text}`)
      const lines = all.slice(0, linesInPage(all))
      const denied = verdicts.filter((verdict) => verdict === "denied").length
      const guarded = verdicts.filter((verdict) => verdict === "protected").length
      const more = found.more || result.more || lines.length < result.matches.length
      const notices = [
        ...(result.stoppedIn === undefined
          ? []
          : [`Stopped: the time ran out in ${quotedPath(resourceOf(result.stoppedIn))}. Try a simpler expression.`]),
        ...(found.more ? ["There are more files than one search can cover."] : []),
        ...(more ? ["There may be more matches: narrow the pattern or the path."] : []),
        ...(result.large > 0 ? [`${plural(result.large, "file")} too large to search.`] : []),
        ...(result.unreadable > 0 ? [`${plural(result.unreadable, "file")} could not be read.`] : []),
        ...(denied > 0 ? [`${plural(denied, "file")} left out: a rule denies reading.`] : []),
        ...(guarded > 0
          ? [`${plural(guarded, "file")} left out that may hold secrets; name one in "path" to ask.`]
          : []),
        ...(lines.length === 0 ? [`No line matches in ${plural(result.searched, "text file")}.`] : [])
      ]
      return { path: target.resource, count: lines.length, files: result.searched, more, notices, lines }
    }),
    render: ({ lines, ...structured }) => {
      const { notices } = structured
      const text = [...lines, ...(notices.length === 0 ? [] : [`[${notices.join(" ")}]`])].join("\n")
      return { structured, content: [{ type: "text", text }] }
    }
  })
})
