/**
 * Programs on a machine that is reached by SSH. All programs of a transport share one connection; each has a channel. The
 * user's login shell starts them. Spec: SL-80..SL-94 in specs/shell.md.
 */
import { constants } from "node:fs"
import { open as openFile, realpath } from "node:fs/promises"
import { connect as connectSocket, type Socket } from "node:net"
import { resolve, sep } from "node:path"
import { Effect, Exit, Redacted, type Scope } from "effect"
import type { AnyAuthMethod, Client, ClientChannel, ConnectConfig, ServerHostKeyAlgorithm } from "ssh2"
import { InvalidOption, TransportFailed } from "../domain/ShellError.ts"
import type { SshTarget } from "../domain/Target.ts"
import { type HostTrust, trust } from "./KnownHosts.ts"
import { type Ending, lostExit, makeProgram, makeShared, type Program, type Shared, type Transport } from "./Program.ts"
import { defaults, type TransportSettings } from "./TransportSettings.ts"

// Reads a private key from the operator's folder; every fault of the path gives the same error, which does not say
// which files exist.

/** No private key is that large. */
const mostBytes = 64 * 1024

/** The error of every path that is not that of a usable key. */
const unusable = new InvalidOption({
  option: "keyPath",
  details: "no usable private key: name a key file within the operator's folder of keys"
})

/** The file may be a link, but must lie within the folder. Links are resolved before the file is opened. */
const readWithin = async (folder: string, name: string): Promise<Buffer> => {
  const root = await realpath(folder)
  const path = await realpath(resolve(root, name))
  if (!path.startsWith(root.endsWith(sep) ? root : root + sep)) throw new Error("outside")
  // A pipe must not block the open.
  const file = await openFile(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const stats = await file.stat()
    if (!stats.isFile() || stats.size > mostBytes) throw new Error("no key")
    return await file.readFile()
  } finally {
    await file.close()
  }
}

/** The bytes of the key file at a path, absolute or relative to the folder. */
const readKey = (folder: string | undefined, name: string): Effect.Effect<Buffer, InvalidOption> =>
  folder === undefined
    ? new InvalidOption({
        option: "keyPath",
        details:
          "no folder of keys is configured: set shell.ssh.keys in the configuration, or use an agent or a password"
      })
    : Effect.tryPromise({ try: () => readWithin(folder, name), catch: () => unusable })

// Brings a script to a remote `sh` unchanged.

/** What single quotes do not keep in every login shell: fish reads backslashes in them, csh `!` and line breaks. */
const unsafe = /['\\!\r\n]/g

const octal = (character: string): string => `\\0${character.charCodeAt(0).toString(8).padStart(3, "0")}`

/**
 * A command that makes any login shell run the script with `sh -c`: an SSH server gives commands to the user's shell. The
 * script is encoded for `printf %b`, so that a shell with other rules of quoting cannot change it.
 */
export const forLoginShell = (script: string): string =>
  `exec sh -c 'exec sh -c "$(printf %b "$1")"' sh '${script.replaceAll(unsafe, octal)}'`

// A connection to an SSH server: the host's key is checked before the user's credentials are sent.

type Ssh2 = typeof import("ssh2")

export interface Connection {
  readonly client: Client
  /** `user@host:port`, for messages. */
  readonly name: string
  readonly shared: Shared
}

const failed = (reason: TransportFailed["reason"], details: string) =>
  new TransportFailed({ transport: "ssh", reason, details })

/** Loaded on first use, for a local shell needs none of it. */
const loadSsh2: Effect.Effect<Ssh2, TransportFailed> = Effect.tryPromise({
  try: async () => (await import("ssh2")).default,
  catch: () => failed("unreachable", "the package ssh2 cannot be loaded: install Daybook's dependencies again")
})

/** Signatures with SHA-1 are not accepted. */
const algorithmsOf: Readonly<Record<string, ReadonlyArray<ServerHostKeyAlgorithm>>> = {
  "ssh-ed25519": ["ssh-ed25519"],
  "ecdsa-sha2-nistp256": ["ecdsa-sha2-nistp256"],
  "ecdsa-sha2-nistp384": ["ecdsa-sha2-nistp384"],
  "ecdsa-sha2-nistp521": ["ecdsa-sha2-nistp521"],
  "ssh-rsa": ["rsa-sha2-512", "rsa-sha2-256"]
}

const hostKeyAlgorithms = (types: ReadonlyArray<string>): Array<ServerHostKeyAlgorithm> => [
  ...new Set([...types.flatMap((type) => algorithmsOf[type] ?? []), ...Object.values(algorithmsOf).flat()])
]

const privateKey = Effect.fnUntraced(function* (
  ssh2: Ssh2,
  target: SshTarget,
  path: string,
  folder: string | undefined
) {
  const bytes = yield* readKey(folder, path)
  const passphrase = target.passphrase === undefined ? undefined : Redacted.value(target.passphrase)
  const key = ssh2.utils.parseKey(bytes, passphrase)
  if (!(key instanceof Error)) return key.isPrivateKey() ? key : yield* unusable
  // ssh2 has no codes. Its words do not contain the key.
  if (!/passphrase|integrity check/i.test(key.message)) return yield* unusable
  return yield* new InvalidOption({
    option: "passphrase",
    details: passphrase === undefined ? "the key is encrypted: give its passphrase" : "it does not decrypt the key"
  })
})

const credentials = Effect.fnUntraced(function* (ssh2: Ssh2, target: SshTarget, settings: TransportSettings) {
  const username = target.user
  const methods: Array<AnyAuthMethod> = []
  /** What they are, for messages. */
  const names: Array<string> = []
  if (target.keyPath !== undefined) {
    const key = yield* privateKey(ssh2, target, target.keyPath, settings.keyFolder)
    methods.push({ type: "publickey", username, key })
    names.push("the key")
  }
  if (target.agent === true) {
    const agent = process.env["SSH_AUTH_SOCK"]
    if (agent === undefined || agent === "") {
      return yield* new InvalidOption({ option: "agent", details: "SSH_AUTH_SOCK is not set: start an SSH agent" })
    }
    methods.push({ type: "agent", username, agent })
    names.push("the keys of the agent")
  }
  if (target.password !== undefined) {
    const password = Redacted.value(target.password)
    methods.push({ type: "password", username, password })
    // Servers that use PAM may ask for the password this way only.
    methods.push({
      type: "keyboard-interactive",
      username,
      prompt: (_name, _instructions, _language, prompts, finish) =>
        finish(prompts.length === 1 && prompts[0]?.echo !== true ? [password] : [])
    })
    names.push("the password")
  }
  return { methods, names: names.join(" and ") }
})

/** Why ssh2 gave up before the connection was ready. Only our own words and system codes go into the message. */
const reasonOf = (cause: Error & { readonly level?: string; readonly code?: unknown }, name: string, tried: string) => {
  switch (cause.level) {
    case "client-authentication":
      return failed("credentials", `${name} refuses ${tried}: check the user and the credentials`)
    case "client-timeout":
      return failed("unreachable", `${name} did not answer in time: check the address and the network`)
    case "client-socket": {
      const code = typeof cause.code === "string" ? cause.code : "unknown fault"
      return failed("unreachable", `${name} cannot be reached (${code}): check the address and the network`)
    }
    default:
      return failed("unreachable", `${name} and Daybook do not agree on a connection: is it an SSH server of today?`)
  }
}

interface ConnectRequest {
  readonly name: string
  readonly config: ConnectConfig
  readonly hostTrust: HostTrust
  readonly tried: string
}

/** Waits until the server has accepted the credentials. */
const ready = (client: Client, socket: Socket, { config, hostTrust, name, tried }: ConnectRequest) =>
  Effect.async<void, TransportFailed>((resume) => {
    let refusal: TransportFailed | undefined
    let trusted: Buffer | undefined
    const fail = (error: TransportFailed) => resume(Effect.fail(refusal ?? error))
    client.on("ready", () => resume(Effect.void))
    client.on("error", (cause) => {
      // Without the agent's keys the other credentials may do; the server has the last word.
      if (!("level" in cause) || cause.level !== "agent") fail(reasonOf(cause, name, tried))
    })
    client.on("close", () => fail(failed("unreachable", `${name} closed the connection`)))
    const hostVerifier = (key: Buffer, verify: (valid: boolean) => void): void => {
      // Keys are exchanged again during long connections. The host must stay the same.
      if (trusted !== undefined) return verify(key.equals(trusted))
      Effect.runCallback(hostTrust.check(key), {
        onExit: (exit) => {
          if (Exit.isSuccess(exit)) trusted = key
          else if (exit.cause._tag === "Fail") refusal = exit.cause.error
          verify(Exit.isSuccess(exit))
        }
      })
    }
    try {
      client.connect({ ...config, sock: socket, hostVerifier })
    } catch {
      fail(failed("unreachable", `${name}: ssh2 rejects the options`))
    }
  })

/** Opens the connection. The scope's end closes it. */
const openConnection = Effect.fn("SshConnection.open")(function* (
  target: SshTarget,
  settings: TransportSettings
): Effect.fn.Return<Connection, TransportFailed | InvalidOption, Scope.Scope> {
  const { host, port = 22, user } = target
  const name = `${user}@${host}${port === 22 ? "" : `:${port}`}`
  const hostTrust = yield* trust({ host, port, fingerprint: target.fingerprint }, settings)
  const ssh2 = yield* loadSsh2
  const { methods, names } = yield* credentials(ssh2, target, settings)
  const config: ConnectConfig = {
    username: user,
    authHandler: methods,
    readyTimeout: settings.readyMillis ?? defaults.readyMillis,
    keepaliveInterval: settings.keepaliveMillis ?? defaults.keepaliveMillis,
    keepaliveCountMax: settings.keepaliveCount ?? defaults.keepaliveCount,
    algorithms: { serverHostKey: hostKeyAlgorithms(hostTrust.types) }
  }
  // A short command waits 40 ms for an acknowledgement unless the socket sends at once.
  const socket = yield* Effect.acquireRelease(
    Effect.sync(() => connectSocket({ host, port, noDelay: true })),
    (opened) => Effect.sync(() => opened.destroy())
  )
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new ssh2.Client()),
    (opened) => Effect.sync(() => opened.end())
  )
  const shared = makeShared()
  client.on("close", shared.lose)
  yield* ready(client, socket, { name, config, hostTrust, tried: names })
  return { client, name, shared }
})

interface OpenChannel extends Ending {
  readonly channel: ClientChannel
}

/** Listens to the channel at once: its end may come in the same packet as its beginning. */
const opened = (channel: ClientChannel): OpenChannel => {
  const ending = makeProgram({ input: channel, stdout: channel, stderr: channel.stderr })
  channel.on("exit", (code: number | null, signal?: string) => ending.end({ code, signal: signal ?? null }))
  channel.on("close", () => ending.end(lostExit))
  return { ...ending, channel }
}

const start = ({ client, name }: Connection, script: string): Effect.Effect<OpenChannel, TransportFailed> =>
  Effect.async((resume) => {
    // OpenSSH ends the whole connection if a command contains NUL.
    if (script.includes("\0")) return resume(Effect.fail(failed("no shell", "a script cannot contain NUL")))
    let abandoned = false
    const gone = () => Effect.fail(failed("lost", `the connection to ${name} is lost: create another shell`))
    try {
      client.exec(forLoginShell(script), (cause, channel) => {
        if (abandoned) channel?.close()
        else if (cause === undefined) resume(Effect.succeed(opened(channel)))
        else if (cause.message === "No response from server") resume(gone())
        else resume(Effect.fail(failed("no shell", `${name} runs no more programs on this connection`)))
      })
    } catch {
      // ssh2 throws if the connection has ended.
      resume(gone())
    }
    return Effect.sync(() => {
      abandoned = true
    })
  })

const run = (connection: Connection) =>
  Effect.fn("SshTransport.run")(function* (script: string): Effect.fn.Return<Program, TransportFailed, Scope.Scope> {
    return yield* Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const { channel, detach, end, program } = yield* restore(start(connection, script))
        const forget = connection.shared.onLost(() => end(lostExit))
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            forget()
            detach()
            channel.close()
          })
        )
        return program
      })
    )
  })

/** A login shell that runs nothing, such as `nologin`, would otherwise look like a shell that exits. */
const probe = (connection: Connection) =>
  Effect.scoped(
    Effect.gen(function* () {
      const program = yield* run(connection)("exit 42")
      program.listen(() => undefined)
      const { code } = yield* program.exit
      if (code === 42) return
      if (code === null) return yield* failed("lost", `the connection to ${connection.name} was lost: try again`)
      return yield* failed("no shell", `${connection.name} does not run sh: check the user's login shell`)
    })
  )

/** Connects. Fails before anything runs if the host, its key or the credentials are not right. */
export const make = Effect.fn("SshTransport.make")(function* (
  target: SshTarget,
  settings: TransportSettings = {}
): Effect.fn.Return<Transport, TransportFailed | InvalidOption, Scope.Scope> {
  const connection = yield* openConnection(target, settings)
  yield* probe(connection)
  return { name: "ssh", run: run(connection), runShell: run(connection) }
})
