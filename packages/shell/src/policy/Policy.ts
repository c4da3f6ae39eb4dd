/**
 * Which commands a live shell may run: the operator's policy first, then the lists of the shell, which can only forbid
 * more. A policy is advice that keeps an agent from mistakes; it is not a sandbox, because programs, scripts and names
 * that earlier commands defined run unseen. Pure. Spec: SL-50..SL-57.
 */
import { Either, Schema } from "effect"
import { baseName } from "@daybook/core/permission/CommandWrappers"
import { describeIssues } from "@daybook/log/support/Issues"
import { CommandBlocked, InvalidOption } from "../domain/ShellError.ts"
import { prepare, redacted } from "../output/RedactionStream.ts"
import { compilePattern, type LinearPattern } from "../output/LineBudget.ts"
import { danger, type VisibleCommand, visibleCommands, type VisibleLine } from "./VisibleCommands.ts"
import { optional } from "@daybook/log/support/Optional"

/** The name of a program or a builtin, without a folder. */
const CommandName = Schema.String.pipe(
  Schema.pattern(/^[^\s/\p{C}]{1,255}$/u, { message: () => "expected the name of a command, without a folder" })
)
const mostEntries = 1_000
const CommandNames = Schema.Array(CommandName).pipe(Schema.maxItems(mostEntries))

const lists = { allow: optional(CommandNames), deny: optional(CommandNames) }

/** Lists of one shell, from the agent that creates it. */
export const ShellLists = Schema.Struct(lists)
export type ShellLists = typeof ShellLists.Type

export const OperatorPolicy = Schema.Struct({
  ...lists,
  /** Patterns of RE2's syntax: a line or a command that one matches is refused. */
  denyPatterns: optional(Schema.Array(Schema.NonEmptyString).pipe(Schema.maxItems(mostEntries))),
  /** Do not refuse commands such as `rm -rf` and `dd`; they are refused by default. */
  allowDangerous: optional(Schema.Boolean)
})
export type OperatorPolicy = typeof OperatorPolicy.Type

/** Decodes the operator's policy. An unknown key is an error: a misspelled `deny` must not allow everything. */
export const decode = (input: unknown): Either.Either<OperatorPolicy, InvalidOption> =>
  Either.mapLeft(
    Schema.decodeUnknownEither(OperatorPolicy)(input, { onExcessProperty: "error", errors: "all" }),
    (error) => new InvalidOption({ option: "policy", details: describeIssues(error, "the policy") })
  )

/** Judges commands. */
export interface Policy {
  readonly check: (command: string) => Either.Either<void, CommandBlocked>
}

interface Lists {
  readonly policy: CommandBlocked["policy"]
  readonly allow: ReadonlySet<string>
  readonly deny: ReadonlySet<string>
  readonly patterns: ReadonlyArray<LinearPattern>
  readonly refusesDanger: boolean
}

/** An allowed name with another folder may be any program. */
const systemFolder = /^\/(?:usr\/(?:local\/)?)?s?bin\/[^/]+$/

const shown = (text: string): string =>
  JSON.stringify(redacted(text.length <= 80 ? text : `${text.slice(0, 80)}...`, prepare()))

const plain = (words: ReadonlyArray<string>): string => words.join(" ")

const denied = ({ deny }: Lists, { commands, possible }: VisibleLine): string | undefined => {
  const names = [...commands.map(({ name }) => name), ...possible.map(([first = ""]) => baseName(first))]
  const found = names.find((name) => deny.has(name))
  return found === undefined ? undefined : `${shown(found)} is denied`
}

const matched = ({ patterns }: Lists, command: string, { commands, possible }: VisibleLine): string | undefined => {
  const texts = [command, ...commands.map(({ words }) => plain(words)), ...possible.map(plain)]
  return patterns.some((pattern) => texts.some(pattern)) ? "a pattern denies it" : undefined
}

const isAllowed = ({ allow }: Lists, { name, words: [path = ""] }: VisibleCommand): boolean =>
  allow.has(name) && (!path.includes("/") || systemFolder.test(path))

const notAllowed = (lists: Lists, { commands, hidden }: VisibleLine): string | undefined => {
  if (lists.allow.size === 0) return undefined
  const other = commands.find((command) => !isAllowed(lists, command))
  if (other !== undefined) return `${shown(other.words[0] ?? other.name)} is not among the allowed commands`
  // Only what is visible can be allowed.
  return hidden[0] === undefined ? undefined : `only listed commands are allowed, and ${hidden[0]}`
}

const refusal = (lists: Lists, command: string, line: VisibleLine): string | undefined =>
  denied(lists, line) ??
  matched(lists, command, line) ??
  (lists.refusesDanger ? danger(line) : undefined) ??
  notAllowed(lists, line)

/** Compiles the operator's policy and the shell's lists. Without either, only dangerous commands are refused. */
export const make = (operator: OperatorPolicy = {}, shell: ShellLists = {}): Either.Either<Policy, InvalidOption> =>
  Either.map(
    Either.all((operator.denyPatterns ?? []).map((pattern) => compilePattern("policy.denyPatterns", pattern))),
    (patterns) => {
      const all: ReadonlyArray<Lists> = [
        {
          policy: "operator",
          allow: new Set(operator.allow),
          deny: new Set(operator.deny),
          patterns,
          refusesDanger: operator.allowDangerous !== true
        },
        { policy: "shell", allow: new Set(shell.allow), deny: new Set(shell.deny), patterns: [], refusesDanger: false }
      ]
      return {
        check: (command) => {
          const line = visibleCommands(command)
          for (const lists of all) {
            const reason = refusal(lists, command, line)
            if (reason !== undefined) return Either.left(new CommandBlocked({ policy: lists.policy, reason }))
          }
          return Either.void
        }
      }
    }
  )
