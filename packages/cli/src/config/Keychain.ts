/**
 * Keys in the system's keychain, by the programs that reach it: `secret-tool` of libsecret on Linux, `security` on macOS. A key is
 * in a program's input and output, never among its words, which all users can read. `KeyFile.ts` names the variables whose keys are
 * there. Spec: CL-835..CL-837 in specs/cli.md.
 */
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { Effect, Either } from "effect"
import { oneLine } from "../render/Plain.ts"
import { FileProblem, UsageError } from "../support/Errors.ts"
import * as Programs from "../support/Programs.ts"
import { namedInKeychain } from "./KeyFile.ts"

/** How a program is called. */
interface Call {
  readonly words: ReadonlyArray<string>
  readonly input: string
}

interface Tool {
  readonly program: string
  readonly store: (variable: string, key: string) => Call
  readonly lookup: (variable: string) => Call
}

const secretTool: Tool = {
  program: "secret-tool",
  store: (variable, key) => ({
    words: ["store", `--label=Daybook: ${variable}`, "service", "daybook", "variable", variable],
    input: key
  }),
  lookup: (variable) => ({ words: ["lookup", "service", "daybook", "variable", variable], input: "" })
}

const security: Tool = {
  program: "security",
  // With -i it reads commands from its input; -X takes the key in hexadecimal.
  store: (variable, key) => ({
    words: ["-i"],
    input: `add-generic-password -U -s daybook -a ${variable} -X ${Buffer.from(key).toString("hex")}\n`
  }),
  lookup: (variable) => ({ words: ["find-generic-password", "-s", "daybook", "-a", variable, "-w"], input: "" })
}

export const toolOf = (platform: NodeJS.Platform): Tool => (platform === "darwin" ? security : secretTool)

/** The program of this system, where it is installed. */
const installed = () => {
  const tool = toolOf(process.platform)
  const path = Programs.find(tool.program)
  return path === undefined ? undefined : { ...tool, path }
}

/** The name of the program, if there is one. */
export const program = (): string | undefined => installed()?.program

/** How long a person has to unlock the keychain. */
const patience = "60 seconds"

/** Runs the program. Returns its output, or the reason why it failed. */
const run = (path: string, { input, words }: Call): Effect.Effect<Either.Either<string, string>> =>
  Effect.async<Either.Either<string, string>>((resume) => {
    // Not the current folder, which may be a project's.
    const child = spawn(path, words, { stdio: ["pipe", "pipe", "pipe"], cwd: homedir(), env: Programs.environment() })
    let [output, complaint] = ["", ""]
    child.stdout.setEncoding("utf8").on("data", (part: string) => (output += part))
    child.stderr.setEncoding("utf8").on("data", (part: string) => (complaint += part))
    child.stdin.on("error", () => undefined).end(input)
    child.once("error", ({ message }) => resume(Effect.succeed(Either.left(message))))
    child.once("close", (code) => {
      const why = complaint.trim() === "" ? "it has none" : oneLine(complaint, 300)
      resume(Effect.succeed(code === 0 ? Either.right(output) : Either.left(why)))
    })
    return Effect.sync(() => child.kill())
  }).pipe(
    Effect.timeoutTo({
      duration: patience,
      onSuccess: (ended) => ended,
      onTimeout: () => Either.left("it did not answer within a minute")
    })
  )

const lookup = (tool: { readonly path: string } & Tool, variable: string) =>
  Effect.map(
    run(tool.path, tool.lookup(variable)),
    Either.flatMap((output) => {
      const key = output.replace(/\n$/, "")
      return key === "" ? Either.left("it has none") : Either.right(key)
    })
  )

/** Keeps a key, and reads it back. */
export const save = Effect.fn("Keychain.save")(function* (variable: string, key: string) {
  const tool = installed()
  const refuse = (why: string) => new FileProblem({ message: `the keychain did not keep ${variable}: ${why}` })
  if (tool === undefined) return yield* refuse(`${toolOf(process.platform).program} is not installed`)
  yield* Either.mapLeft(yield* run(tool.path, tool.store(variable, key)), refuse)
  const kept = yield* Either.mapLeft(yield* lookup(tool, variable), refuse)
  if (kept !== key) return yield* refuse("it has another key of this name")
})

/** Why variables have no key from the keychain: none is asked for twice. */
const problems = new Map<string, string>()

const isUnset = (variable: string): boolean => (process.env[variable] ?? "") === ""

/** Sets the variables whose keys are in the keychain, and that the environment does not set. */
export const fill = Effect.suspend(() => {
  const wanted = namedInKeychain().filter((variable) => isUnset(variable) && !problems.has(variable))
  if (wanted.length === 0) return Effect.void
  const tool = installed()
  const { program } = toolOf(process.platform)
  return Effect.forEach(
    wanted,
    (variable) =>
      Effect.map(
        tool === undefined ? Effect.succeed(Either.left(`${program} is not installed`)) : lookup(tool, variable),
        Either.match({
          onLeft: (why) => void problems.set(variable, why),
          onRight: (key) => void (process.env[variable] = key)
        })
      ),
    { concurrency: "unbounded", discard: true }
  )
})

/** Fails if a key was not given: another model must not answer in place of the wanted one. */
export const complete = Effect.suspend(() => {
  const lacking = namedInKeychain().flatMap((variable) => {
    const why = problems.get(variable)
    return why === undefined || !isUnset(variable) ? [] : [`${variable} (${why})`]
  })
  if (lacking.length === 0) return Effect.void
  const each = lacking.join(", ")
  return new UsageError({
    message: `the system's keychain did not give ${each}: set the variable, or keep the key again with daybook setup`
  })
})
