/** Opens a live shell for `daybook shell create`. Checks everything before it starts a host. Spec: SL-180, SL-181. */
import { resolve } from "node:path"
import { Effect } from "effect"
import { Target } from "@daybook/shell/domain/Target"
import { checkpointSettings } from "@daybook/shell/ShellOptions"
import type { CreateRequest } from "@daybook/shell/host/HostProtocol"
import { decode } from "@daybook/shell/mcp/Arguments"
import { ShellLists } from "@daybook/shell/policy/Policy"
import { present } from "@daybook/log/support/Optional"
import * as Folder from "../arguments/Folder.ts"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import { standard } from "../support/Stream.ts"
import { Output } from "../terminal/Output.ts"
import * as Question from "../terminal/Question.ts"
import * as Terminal from "../terminal/Terminal.ts"
import { asFlag, withStarted } from "./ShellHostWork.ts"

const longest = 65_536

/** The first line of stdin. */
const fromStdin: Effect.Effect<string, UsageError> = Effect.tryPromise({
  try: async () => {
    let text = ""
    process.stdin.setEncoding("utf8")
    for await (const chunk of process.stdin) {
      text += String(chunk)
      if (text.includes("\n") || text.length > longest) break
    }
    return text.split("\n")[0]?.replace(/\r$/, "") ?? ""
  },
  catch: (cause) => new UsageError({ message: `stdin cannot be read: ${String(cause)}` })
}).pipe(
  Effect.filterOrFail(
    (secret) => secret !== "" && secret.length <= longest,
    () => new UsageError({ message: "expected the password as the first line of stdin" })
  )
)

/** Enter and Ctrl-D. */
const ends = ["\r", "\n", "\u0004"]

/** The text after its backspaces and Ctrl-U are applied. */
const edited = (typed: string): string => {
  let text = ""
  for (const key of typed) {
    if (key === "\u007f" || key === "\b") text = Array.from(text).slice(0, -1).join("")
    else if (key === "\u0015") text = ""
    else text += key
  }
  return text
}

/** Asks at the terminal; the keys are not shown. */
export const ask = (prompt: string): Effect.Effect<string, UsageError> => {
  if (!Question.canAsk()) {
    return Effect.fail(new UsageError({ message: "no terminal to ask for the password: give --password-stdin" }))
  }
  const { stderr } = standard()
  const read = Effect.async<string>((resume) => {
    let typed = ""
    const stop = Terminal.standard.listen("unseen", (keys) => {
      typed += keys ?? "\r"
      const end = Math.min(...ends.map((key) => typed.indexOf(key)).filter((at) => at >= 0))
      if (end === Infinity && typed.length <= longest) return
      stop()
      stderr.write("\n", () => undefined)
      resume(Effect.succeed(edited(typed.slice(0, end))))
    })
    // From now on keys are not shown.
    stderr.write(prompt, () => undefined)
    return Effect.sync(stop)
  })
  return Effect.filterOrFail(
    Terminal.alone(read),
    (secret) => secret !== "",
    () => new UsageError({ message: "no password was given" })
  )
}

interface CreateFlags {
  readonly cwd: string | undefined
  readonly ssh: string | undefined
  readonly key: string | undefined
  readonly agent: boolean
  readonly password: boolean
  readonly passwordStdin: boolean
  readonly fingerprint: string | undefined
  readonly docker: string | undefined
  readonly user: string | undefined
  readonly workspace: string | undefined
  readonly manual: boolean
  readonly ignores: ReadonlyArray<string>
  readonly allow: string | undefined
  readonly deny: string | undefined
  readonly json: boolean
}

const refuse = (message: string) => new UsageError({ message })

/** Options of one transport that are given with another one. */
const strays = (given: CreateFlags): ReadonlyArray<string> => {
  const ofSsh = [
    ["--key", given.key !== undefined],
    ["--agent", given.agent],
    ["--password", given.password],
    ["--password-stdin", given.passwordStdin],
    ["--fingerprint", given.fingerprint !== undefined]
  ] as const
  const ofDocker = [["--user", given.user !== undefined]] as const
  const named = (options: ReadonlyArray<readonly [string, boolean]>, other: boolean) =>
    other ? [] : options.filter(([, isGiven]) => isGiven).map(([name]) => name)
  return [...named(ofSsh, given.ssh !== undefined), ...named(ofDocker, given.docker !== undefined)]
}

const address = /^(?<user>[^@\s]+)@(?:\[(?<ip>[^\]\s]+)\]|(?<host>[^:@[\]\s]+))(?::(?<port>\d{1,5}))?$/

const sshOf = Effect.fnUntraced(function* (given: CreateFlags, written: string) {
  const { host, ip, port, user } = address.exec(written)?.groups ?? {}
  if (user === undefined) {
    return yield* refuse(`--ssh: expected USER@HOST or USER@HOST:PORT, got "${oneLine(written, 80)}"`)
  }
  if (given.password && given.passwordStdin) return yield* refuse("--password and --password-stdin exclude each other")
  const hasKey = given.key !== undefined
  const asks = given.password || !(hasKey || given.agent || given.passwordStdin)
  const target = {
    transport: "ssh",
    user,
    host: host ?? ip,
    ...(port === undefined ? {} : { port: Number(port) }),
    ...(given.agent ? { agent: true } : {}),
    ...present({ keyPath: given.key, fingerprint: given.fingerprint, cwd: given.cwd })
  }
  const secretName = hasKey ? "passphrase" : "password"
  // Refuses an invalid target before it asks for the password.
  if (asks || given.passwordStdin) yield* decode(Target, { ...target, [secretName]: "placeholder" })
  const what = hasKey ? "passphrase of the key" : `password of ${oneLine(written, 80)}`
  const secret = given.passwordStdin ? yield* fromStdin : asks ? yield* ask(`${what}: `) : undefined
  return yield* decode(Target, { ...target, ...(secret === undefined ? {} : { [secretName]: secret }) })
})

const targetOf = Effect.fnUntraced(function* (given: CreateFlags) {
  if (given.ssh !== undefined && given.docker !== undefined) {
    return yield* refuse("--ssh and --docker exclude each other")
  }
  const [stray] = strays(given)
  if (stray !== undefined) {
    return yield* refuse(`${stray} needs ${stray === "--user" ? "--docker" : "--ssh"}`)
  }
  if (given.ssh !== undefined) return yield* sshOf(given, given.ssh)
  if (given.docker !== undefined) {
    return yield* decode(Target, {
      transport: "docker",
      ...present({ container: given.docker, user: given.user, cwd: given.cwd })
    })
  }
  return yield* decode(Target, {
    transport: "local",
    cwd: yield* Folder.given(given.cwd, "--cwd")
  })
})

const namesOf = (list: string | undefined) =>
  list
    ?.split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "")

const requestOf = Effect.fnUntraced(function* (given: CreateFlags) {
  const lists = yield* decode(ShellLists, present({ allow: namesOf(given.allow), deny: namesOf(given.deny) }))
  const isLocal = given.ssh === undefined && given.docker === undefined
  const workspace = isLocal && given.workspace !== undefined ? resolve(given.workspace) : given.workspace
  if (workspace === undefined && (given.manual || given.ignores.length > 0)) {
    return yield* refuse(`${given.manual ? "--no-auto-checkpoint" : "--ignore"} needs --workspace`)
  }
  const checkpoints =
    workspace === undefined
      ? {}
      : {
          workspace,
          checkpoints: true,
          ...(given.manual ? { autoSnapshot: false } : {}),
          checkpointIgnores: given.ignores
        }
  yield* checkpointSettings(isLocal, checkpoints)
  return { target: yield* targetOf(given), lists, ...checkpoints } satisfies CreateRequest
})

const flagsOf = ({ docker }: CreateFlags) => ({
  host: "--ssh",
  port: "--ssh",
  user: docker !== undefined ? "--user" : "--ssh",
  keyPath: "--key",
  passphrase: "--password",
  password: "--password",
  agent: "--agent",
  fingerprint: "--fingerprint",
  container: "--docker",
  cwd: "--cwd",
  workspace: "--workspace",
  checkpoint_ignores: "--ignore",
  allow: "--allow",
  deny: "--deny"
})

export const run = Effect.fn("Command.shell.create")(function* (given: CreateFlags) {
  const output = yield* Output
  const created = Effect.flatMap(requestOf(given), (request) => withStarted((host) => host.create(request)))
  const id = yield* Effect.catchTag(created, "InvalidOption", asFlag(flagsOf(given)))
  yield* output.write(given.json ? `${jsonLine({ session_id: id }, output.terminal)}\n` : `${id}\n`)
})
