/**
 * Opens a live shell as the words of `daybook shell create` say. Everything is checked before a host is started.
 * Spec: SL-180, SL-181 in specs/shell.md.
 */
import { resolve } from "node:path"
import { Effect, Option } from "effect"
import { Target } from "@daybook/shell/domain/Target"
import { ShellLists } from "@daybook/shell/policy/Policy"
import { checkpointSettings } from "@daybook/shell/ShellOptions"
import type { CreateRequest } from "@daybook/shell/host/HostProtocol"
import { decode } from "@daybook/shell/mcp/Arguments"
import * as Folder from "../arguments/Folder.ts"
import { jsonLine, oneLine } from "../render/Plain.ts"
import { UsageError } from "../support/Errors.ts"
import { Output } from "../terminal/Output.ts"
import * as Secret from "../terminal/Secret.ts"
import { asFlag } from "./ShellFlags.ts"
import { withStarted } from "./ShellHostWork.ts"

export interface Given {
  readonly cwd: Option.Option<string>
  readonly ssh: Option.Option<string>
  readonly key: Option.Option<string>
  readonly agent: boolean
  readonly password: boolean
  readonly passwordStdin: boolean
  readonly fingerprint: Option.Option<string>
  readonly docker: Option.Option<string>
  readonly user: Option.Option<string>
  readonly workspace: Option.Option<string>
  readonly manual: boolean
  readonly ignores: ReadonlyArray<string>
  readonly allow: Option.Option<string>
  readonly deny: Option.Option<string>
  readonly json: boolean
}

const refuse = (message: string) => new UsageError({ message })

/** The fields that have a value. */
const present = (fields: Readonly<Record<string, Option.Option<unknown>>>) =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => (Option.isSome(value) ? [[name, value.value] as const] : []))
  )

/** Options of one transport that are given with another one. */
const strays = (given: Given): ReadonlyArray<string> => {
  const ofSsh = [
    ["--key", Option.isSome(given.key)],
    ["--agent", given.agent],
    ["--password", given.password],
    ["--password-stdin", given.passwordStdin],
    ["--fingerprint", Option.isSome(given.fingerprint)]
  ] as const
  const ofDocker = [["--user", Option.isSome(given.user)]] as const
  const named = (options: ReadonlyArray<readonly [string, boolean]>, other: boolean) =>
    other ? [] : options.filter(([, isGiven]) => isGiven).map(([name]) => name)
  return [...named(ofSsh, Option.isSome(given.ssh)), ...named(ofDocker, Option.isSome(given.docker))]
}

const address = /^(?<user>[^@\s]+)@(?:\[(?<ip>[^\]\s]+)\]|(?<host>[^:@[\]\s]+))(?::(?<port>\d{1,5}))?$/

const sshOf = Effect.fnUntraced(function* (given: Given, written: string) {
  const { host, ip, port, user } = address.exec(written)?.groups ?? {}
  if (user === undefined) {
    return yield* refuse(`--ssh: expected USER@HOST or USER@HOST:PORT, got "${oneLine(written, 80)}"`)
  }
  if (given.password && given.passwordStdin) return yield* refuse("--password and --password-stdin exclude each other")
  const hasKey = Option.isSome(given.key)
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
  const secret = given.passwordStdin ? yield* Secret.fromStdin : asks ? yield* Secret.ask(`${what}: `) : undefined
  return yield* decode(Target, { ...target, ...(secret === undefined ? {} : { [secretName]: secret }) })
})

const targetOf = Effect.fnUntraced(function* (given: Given) {
  if (Option.isSome(given.ssh) && Option.isSome(given.docker)) {
    return yield* refuse("--ssh and --docker exclude each other")
  }
  const [stray] = strays(given)
  if (stray !== undefined) {
    return yield* refuse(`${stray} needs ${stray === "--user" ? "--docker" : "--ssh"}`)
  }
  if (Option.isSome(given.ssh)) return yield* sshOf(given, given.ssh.value)
  if (Option.isSome(given.docker)) {
    return yield* decode(Target, {
      transport: "docker",
      ...present({ container: given.docker, user: given.user, cwd: given.cwd })
    })
  }
  return yield* decode(Target, {
    transport: "local",
    cwd: yield* Folder.given(Option.getOrUndefined(given.cwd), "--cwd")
  })
})

const namesOf = (list: Option.Option<string>) =>
  Option.map(list, (names) =>
    names
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== "")
  )

const requestOf = Effect.fnUntraced(function* (given: Given) {
  const lists = yield* decode(ShellLists, present({ allow: namesOf(given.allow), deny: namesOf(given.deny) }))
  const isLocal = Option.isNone(given.ssh) && Option.isNone(given.docker)
  const workspace = Option.map(given.workspace, (path) => (isLocal ? resolve(path) : path))
  if (Option.isNone(workspace) && (given.manual || given.ignores.length > 0)) {
    return yield* refuse(`${given.manual ? "--no-auto-checkpoint" : "--ignore"} needs --workspace`)
  }
  const checkpoints = Option.match(workspace, {
    onNone: () => ({}),
    onSome: (path) => ({
      workspace: path,
      checkpoints: true,
      ...(given.manual ? { autoSnapshot: false } : {}),
      checkpointIgnores: given.ignores
    })
  })
  yield* checkpointSettings(isLocal, checkpoints)
  return { target: yield* targetOf(given), lists, ...checkpoints } satisfies CreateRequest
})

/** Flags by the options that they set. */
const flagsOf = ({ docker }: Given) => ({
  host: "--ssh",
  port: "--ssh",
  user: Option.isSome(docker) ? "--user" : "--ssh",
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

export const run = Effect.fn("Command.shell.create")(function* (given: Given) {
  const output = yield* Output
  const created = Effect.flatMap(requestOf(given), (request) => withStarted((host) => host.create(request)))
  const id = yield* Effect.catchTag(created, "InvalidOption", asFlag(flagsOf(given)))
  yield* output.write(given.json ? `${jsonLine({ session_id: id }, output.terminal)}\n` : `${id}\n`)
})
