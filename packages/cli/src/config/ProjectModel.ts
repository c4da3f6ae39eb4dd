/** Reads the model that a project chooses for new sessions, from its `.daybook/config.yaml`. Spec: CL-833 in specs/cli.md. */
import { join } from "node:path"
import { Effect, Either, Schema } from "effect"
import { WrittenModel } from "@daybook/core/agent/AgentDefinition"
import { decodeParsed, optional, parseYaml, shaped, showIssues } from "@daybook/core/definition/Yaml"
import { readText, realpath } from "@daybook/core/support/TextFile"
import { isTrusted, projectAt, projectRoot, type Trust } from "@daybook/core/trust/ProjectTrust"
import { UsageError } from "../support/Errors.ts"

/** All that a project may set. */
const WrittenProject = Schema.Struct({ model: optional(WrittenModel) }).pipe(shaped("a map of settings"))

const maximumBytes = 64 * 1024

/** An empty file sets nothing. */
const parse = (text: string) =>
  Either.flatMap(parseYaml(text), ({ at, value }) => decodeParsed(WrittenProject, { at, value: value ?? {} }))

const isDisabled = (): boolean =>
  ["DAYBOOK_DISABLE_PROJECT_CONFIG", "OPENCODE_DISABLE_PROJECT_CONFIG"].some((name) =>
    ["1", "true"].includes((process.env[name] ?? "").trim().toLowerCase())
  )

/** The model of the folder's project; undefined if it names none, or is not trusted. */
export const projectModel = Effect.fn("ProjectModel.read")(function* (directory: string, trust: Trust) {
  if (isDisabled()) return undefined
  const folder = yield* Effect.promise(() => realpath(directory).catch(() => directory))
  const root = yield* projectRoot(folder)
  const file = join(root, ".daybook", "config.yaml")
  const refuse = (details: string) =>
    new UsageError({ message: `the project's configuration ${file} cannot be used: ${details.replaceAll("\n", "; ")}` })
  const text = yield* Effect.either(readText(file, { maxBytes: maximumBytes, within: root }))
  // The survey of a project costs more than the look for a file that most projects lack.
  if (Either.isLeft(text) && text.left.reason === "missing") return undefined
  if (!isTrusted((yield* projectAt(trust, folder)).standing)) return undefined
  if (Either.isLeft(text)) return yield* refuse(text.left.details)
  const { model } = yield* Either.mapLeft(parse(text.right), (issues) => refuse(showIssues(issues)))
  return model
})
