/** The tools of the MCP server: their descriptions and their work. Spec: SL-120..SL-122 in specs/shell.md. */
import { Effect, JSONSchema, Schema } from "effect"
import { JsonRecord } from "@daybook/log/domain/Values"
import { present } from "@daybook/log/support/Optional"
import { Checkpoint, Checkpointed, Restored } from "../checkpoint/Checkpoints.ts"
import { ExecResult } from "../domain/ExecResult.ts"
import type { InvalidOption, ShellNotFound } from "../domain/ShellError.ts"
import type { ExecError } from "../OpenShell.ts"
import { type OutputNotFound, OutputPage, type OutputStream } from "../output/OutputStore.ts"
import * as Shells from "../Shells.ts"
import * as Arguments from "./Arguments.ts"

export type ToolError = Shells.CreateError | Shells.CheckpointError | ExecError | ShellNotFound | OutputNotFound

/** What a tool returns: an object for programs, and the value that models read as JSON. */
export interface Answer {
  readonly structured: JsonRecord
  readonly text: unknown
}

/** Receives what a running command reports. */
export interface Reports {
  readonly onText: ((stream: OutputStream, text: string) => void) | undefined
  readonly onExecuted: (id: string, result: ExecResult) => Effect.Effect<void>
}

export interface Tool {
  readonly name: string
  readonly description: string
  readonly inputSchema: ObjectSchema
  readonly annotations: { readonly readOnlyHint: boolean; readonly destructiveHint: boolean }
  readonly call: (given: unknown, reports: Reports) => Effect.Effect<Answer, ToolError, Shells.Shells>
}

/** A JSON Schema whose root is an object, as the protocol requires. */
type ObjectSchema = JsonRecord & { readonly type: "object" }

const isObjectSchema = (schema: JsonRecord): schema is ObjectSchema => schema["type"] === "object"

const objectSchema = <A, I>(schema: Schema.Schema<A, I>): ObjectSchema => {
  const made = Schema.decodeUnknownSync(JsonRecord)(JSON.parse(JSON.stringify(JSONSchema.make(schema))))
  if (!isObjectSchema(made)) throw new Error("a tool's arguments are an object")
  return made
}

/** Builds a tool from its schemas. The value of `run` is encoded for both forms of the answer. */
const tool = <A, I, B, J>(definition: {
  readonly name: string
  readonly description: string
  readonly changes: boolean
  readonly input: Schema.Schema<A, I>
  readonly output: Schema.Schema<B, J>
  readonly run: (
    shells: Shells.Shells["Type"],
    given: A,
    reports: Reports
  ) => Effect.Effect<B, ToolError | InvalidOption>
  /** What models read, if it is not the whole value. */
  readonly read?: (value: B) => unknown
}): Tool => {
  const { changes, description, input, name, output, read, run } = definition
  const encode = (value: B): Answer => ({
    structured: Schema.decodeUnknownSync(JsonRecord)(Schema.encodeSync(output)(value)),
    text: read === undefined ? value : read(value)
  })
  return {
    name,
    description,
    inputSchema: objectSchema(input),
    annotations: { readOnlyHint: !changes, destructiveHint: changes },
    call: (given, reports) =>
      Effect.gen(function* () {
        const shells = yield* Shells.Shells
        return encode(yield* run(shells, yield* Arguments.decode(input, given), reports))
      })
  }
}

const create = tool({
  name: "session_create",
  description:
    "Opens a live shell and returns its id. Folder, variables, functions and options persist from command to command. " +
    "A shell that is idle for long is closed; destroy it when it is no longer needed.",
  changes: true,
  input: Arguments.Create,
  output: Schema.Struct({ session_id: Schema.String }),
  run: (shells, given) =>
    Effect.gen(function* () {
      const target = yield* Arguments.targetOf(given)
      const lists = yield* Arguments.listsOf(given)
      const budget = given.output_budget
      const options = { target, lists, ...Arguments.checkpointsOf(given) }
      return { session_id: yield* shells.create({ ...options, ...(budget === undefined ? {} : { budget }) }) }
    }).pipe(Effect.mapError((error) => (error._tag === "InvalidOption" ? Arguments.asArgument(error) : error)))
})

const exec = tool({
  name: "session_exec",
  description:
    "Runs a command in a live shell and waits for its end. stdout and stderr are separate, without terminal sequences and " +
    "secrets. exit_code is authoritative: 124 after a timeout, which stops the command and keeps the shell if it answers.",
  changes: true,
  input: Arguments.Exec,
  output: ExecResult,
  run: (shells, { budget, command, input, session_id: id, timeout_secs: timeoutSeconds }, reports) =>
    shells
      .exec(id, command, {
        ...present({ budget, input, timeoutSeconds, onText: reports.onText })
      })
      .pipe(Effect.tap((result) => reports.onExecuted(id, result)))
})

const destroy = tool({
  name: "session_destroy",
  description: "Closes a live shell and stops everything that runs in it. destroyed is false if it is not open.",
  changes: true,
  input: Arguments.Destroy,
  output: Schema.Struct({ destroyed: Schema.Boolean }),
  run: (shells, given) => Effect.map(shells.destroy(given.session_id), (destroyed) => ({ destroyed }))
})

const list = tool({
  name: "session_list",
  description: "Lists the open shells in the order of their opening.",
  changes: false,
  input: Arguments.List,
  output: Schema.Struct({ sessions: Schema.Array(Shells.ListedShell) }),
  run: (shells, { transport }) =>
    Effect.map(shells.list, (open) => ({
      sessions: open.filter((shell) => transport === undefined || shell.transport === transport)
    })),
  read: ({ sessions }) => sessions
})

const output = tool({
  name: "session_output",
  description: "Reads a page of a whole output, by the handle in the field output of a truncated result.",
  changes: false,
  input: Arguments.Output,
  output: OutputPage,
  run: (shells, { output: handle, stream = "stdout", ...page }) => shells.output(handle, stream, page)
})

const checkpoint = tool({
  name: "session_checkpoint",
  description:
    "Keeps the files of the shell's workspace, so that session_restore can bring them back. Ignored files and files with " +
    "secrets are not kept.",
  changes: false,
  input: Arguments.Checkpoint,
  output: Checkpointed,
  run: (shells, { label, session_id: id }) => shells.checkpoint(id, label)
})

const checkpoints = tool({
  name: "session_checkpoints",
  description: "Lists the checkpoints of a shell's workspace, the newest first.",
  changes: false,
  input: Arguments.Checkpoints,
  output: Schema.Struct({ checkpoints: Schema.Array(Checkpoint) }),
  run: (shells, { session_id: id }) => Effect.map(shells.checkpoints(id), (kept) => ({ checkpoints: kept })),
  read: ({ checkpoints: kept }) => kept
})

const restore = tool({
  name: "session_restore",
  description:
    "Brings the files of the workspace back to a checkpoint, and says which. Files that came later are removed; ignored files " +
    "stay. safety_checkpoint is the state before.",
  changes: true,
  input: Arguments.Restore,
  output: Restored,
  run: (shells, { checkpoint_id: checkpointID, session_id: id }) => shells.restore(id, checkpointID)
})

export const tools: ReadonlyArray<Tool> = [create, exec, destroy, list, output, checkpoint, checkpoints, restore]
