/**
 * The arguments of the MCP tools, as a client gives them: their schemas, decoding, and the target that a creation names.
 * Errors name the field and what is expected, never a value. Spec: SL-121, SL-122 in specs/shell.md.
 */
import { Effect, Either, Schema } from "effect"
import { decodeParsed, expects, type KeyPath, shaped, showIssue } from "@daybook/core/definition/Yaml"
import { ShellTransport } from "@daybook/log/events/LiveShellEvents"
import { type CheckpointOptions, defaults } from "../ShellOptions.ts"
import { Budget } from "../domain/ExecResult.ts"
import { InvalidOption } from "../domain/ShellError.ts"
import { Target } from "../domain/Target.ts"
import { OutputStream } from "../output/OutputStore.ts"
import { ShellLists } from "../policy/Policy.ts"

const described = <A, I>(schema: Schema.Schema<A, I>, description: string) =>
  Schema.optionalWith(schema.annotations({ description }), { exact: true })

const transport = ShellTransport.pipe(expects("local, ssh or docker"))
const text = Schema.String.pipe(expects("a text"))
const integer = Schema.Int.pipe(expects("a whole number"))
const names = Schema.Array(text).pipe(shaped("a list of names"))
const budget = described(
  Budget,
  "How much output is returned: grep first, then keep, then max_chars. The whole output stays readable with session_output."
)
const sessionID = text.annotations({ description: "The id that session_create returned." })

/** One flat record, so that a client needs no nested form. `targetOf` says which fields belong to which transport. */
export const Create = Schema.Struct({
  transport: transport.annotations({ description: "Where the shell runs." }),
  cwd: described(text, "The absolute path of the folder in which the shell starts."),
  host: described(text, "ssh: the host."),
  port: described(integer, "ssh: the port, 22 by default."),
  user: described(text, "ssh: the user. docker: a user of the container; its default user otherwise."),
  password: described(text, "ssh: the password."),
  key_path: described(text, "ssh: a private key in the operator's folder of keys."),
  passphrase: described(text, "ssh: the passphrase of the key."),
  agent: described(Schema.Boolean.pipe(expects("true or false")), "ssh: use the keys of the SSH agent."),
  fingerprint: described(text, "ssh: the host key's expected fingerprint, SHA256:..."),
  container: described(text, "docker: the name or id of a running container."),
  allow: described(
    names,
    "Only these commands may run, each by its name without a folder. The operator's policy comes first."
  ),
  deny: described(names, "These commands may not run."),
  output_budget: budget,
  workspace: described(text, "The absolute path of the folder that session_checkpoint keeps, on the shell's machine."),
  checkpoints: described(
    Schema.Boolean.pipe(expects("true or false")),
    "Checkpoints of the workspace: on by default for ssh and docker, on request for local."
  ),
  auto_snapshot: described(
    Schema.Boolean.pipe(expects("true or false")),
    "A checkpoint before each command that may change files; on by default where there are checkpoints."
  ),
  checkpoint_ignores: described(
    Schema.Array(text).pipe(shaped("a list of patterns")),
    "Patterns, as in .gitignore, of files that checkpoints leave alone."
  )
})
export type Create = typeof Create.Type

export const Exec = Schema.Struct({
  session_id: sessionID,
  command: text.annotations({ description: "A command line of the shell; several lines are allowed." }),
  budget,
  timeout_secs: described(
    Schema.Finite.pipe(expects("a number")),
    `Seconds until the command is stopped, 1 to ${defaults.longestTimeoutSeconds}; ${defaults.timeoutSeconds} by default.`
  ),
  input: described(text, "The command's standard input; empty by default.")
})

export const Destroy = Schema.Struct({ session_id: sessionID })

export const List = Schema.Struct({ transport: described(transport, "Only shells of this transport.") })

export const Output = Schema.Struct({
  output: text.annotations({ description: "The handle in the field output of a result." }),
  stream: described(OutputStream.pipe(expects("stdout or stderr")), "stdout by default."),
  offset: described(
    Schema.NonNegativeInt.pipe(expects("a whole number, 0 or more")),
    "The byte where the page begins: next of the page before; 0 by default."
  ),
  limit: described(
    Schema.Int.pipe(Schema.between(16, 1_048_576), expects("a whole number, 16 to 1,048,576")),
    "The bytes of the page, 16 to 1,048,576; 65,536 by default."
  )
})

export const Checkpoint = Schema.Struct({
  session_id: sessionID,
  label: described(text.pipe(Schema.maxLength(1_000)), "What the checkpoint is for.")
})

export const Checkpoints = Schema.Struct({ session_id: sessionID })

export const Restore = Schema.Struct({
  session_id: sessionID,
  checkpoint_id: described(text, "The most recent checkpoint by default, except those that a restore made.")
})

/** Only a transport's name is repeated in errors: other fields may hold secrets. */
const isSecret = ([field]: KeyPath): boolean => field !== "transport"

/** Decodes arguments; unknown fields are an error. The error names every field with a fault. */
export const decode = <A, I>(schema: Schema.Schema<A, I>, given: unknown): Effect.Effect<A, InvalidOption> =>
  Either.mapLeft(decodeParsed(schema, { value: given, at: () => ({}) }, isSecret), (issues) => {
    const [first, ...rest] = issues.slice(0, 8)
    return new InvalidOption({
      option: first?.path === undefined || first.path === "" ? "arguments" : first.path,
      details: [first?.details ?? "not valid", ...rest.map(showIssue)].join("; ")
    })
  })

/** The fields of a creation by transport, with their names in `Target`. */
const fields: Readonly<Record<Create["transport"], Readonly<Record<string, string>>>> = {
  local: { cwd: "cwd" },
  ssh: {
    host: "host",
    port: "port",
    user: "user",
    password: "password",
    key_path: "keyPath",
    passphrase: "passphrase",
    agent: "agent",
    fingerprint: "fingerprint",
    cwd: "cwd"
  },
  docker: { container: "container", user: "user", cwd: "cwd" }
}

/** Fields for every transport, which are no part of the target. */
const common: ReadonlySet<string> = new Set([
  "transport",
  "allow",
  "deny",
  "output_budget",
  "workspace",
  "checkpoints",
  "auto_snapshot",
  "checkpoint_ignores"
])

/** The target of a creation. A field of another transport is refused: the command is not for this machine. */
export const targetOf = (given: Create): Effect.Effect<Target, InvalidOption> => {
  const names = fields[given.transport]
  const own = Object.entries(given).filter(([name]) => !common.has(name))
  const stray = own.find(([name]) => names[name] === undefined)
  if (stray !== undefined) {
    const details = `is not an option of a ${given.transport} shell; expected ${Object.keys(names).join(", ")}`
    return Effect.fail(new InvalidOption({ option: stray[0], details }))
  }
  const target = Object.fromEntries(own.map(([name, value]) => [names[name] ?? name, value]))
  return decode(Target, { transport: given.transport, ...target })
}

/** Options of a creation whose arguments have other names. */
const written: Readonly<Record<string, string>> = { keyPath: "key_path", budget: "output_budget" }

/** The error of a creation names the argument. */
export const asArgument = ({ details, option }: InvalidOption): InvalidOption => {
  const [name = "", ...rest] = option.split(".")
  return new InvalidOption({ option: [written[name] ?? name, ...rest].join("."), details })
}

export const listsOf = ({ allow, deny }: Create): Effect.Effect<ShellLists, InvalidOption> =>
  decode(ShellLists, { ...(allow === undefined ? {} : { allow }), ...(deny === undefined ? {} : { deny }) })

export const checkpointsOf = (given: Create): CheckpointOptions => ({
  ...(given.workspace === undefined ? {} : { workspace: given.workspace }),
  ...(given.checkpoints === undefined ? {} : { checkpoints: given.checkpoints }),
  ...(given.auto_snapshot === undefined ? {} : { autoSnapshot: given.auto_snapshot }),
  ...(given.checkpoint_ignores === undefined ? {} : { checkpointIgnores: given.checkpoint_ignores })
})
