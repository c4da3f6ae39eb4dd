/**
 * Where a shell runs, as a caller states it, and the id that names the shell. Values from outside pass these schemas before
 * anything starts. Spec: SL-1, SL-2 in specs/shell.md.
 */
import { isIPv6 } from "node:net"
import { Schema } from "effect"
import { optional } from "@daybook/log/support/Optional"

/** An absolute path without NUL. */
export const AbsolutePath = Schema.String.pipe(
  Schema.filter((path) => (path.startsWith("/") && !path.includes("\0") ? undefined : "expected an absolute path"))
)

/** A name without spaces, control characters or a leading dash, so that it cannot be read as an option. */
const Name = Schema.String.pipe(
  Schema.pattern(/^[A-Za-z0-9_][^\s\p{C}]{0,252}$/u, { message: () => "expected a name without spaces" })
)

/** A host's name, or its address. */
const Host = Schema.String.pipe(
  Schema.filter((host) =>
    Schema.is(Name)(host) || isIPv6(host) ? undefined : "expected a host name or an IP address, without spaces"
  )
)

/** A shell on this machine. */
export const LocalTarget = Schema.Struct({
  transport: Schema.Literal("local"),
  /** The folder it starts in; the process's by default. */
  cwd: optional(AbsolutePath)
})
export type LocalTarget = typeof LocalTarget.Type

/** A shell over SSH. One of `password`, `keyPath` and `agent` is needed. */
export const SshTarget = Schema.Struct({
  transport: Schema.Literal("ssh"),
  host: Host,
  /** 22 by default. */
  port: optional(Schema.Int.pipe(Schema.between(1, 65_535))),
  user: Name,
  password: optional(Schema.Redacted(Schema.NonEmptyString)),
  /** A private key within the operator's folder of keys. */
  keyPath: optional(Schema.NonEmptyString),
  passphrase: optional(Schema.Redacted(Schema.NonEmptyString)),
  /** Use the keys of the SSH agent at `SSH_AUTH_SOCK`. */
  agent: optional(Schema.Boolean),
  /** The host key's expected fingerprint, `SHA256:...`; else the known hosts decide. */
  fingerprint: optional(Schema.String.pipe(Schema.pattern(/^SHA256:[A-Za-z0-9+/]{43}=?$/))),
  cwd: optional(AbsolutePath)
}).pipe(
  Schema.filter(({ agent, keyPath, password }) =>
    password !== undefined || keyPath !== undefined || agent === true
      ? undefined
      : "ssh needs a password, a key path or agent: true"
  )
)
export type SshTarget = typeof SshTarget.Type

/** A shell in a running container. */
export const DockerTarget = Schema.Struct({
  transport: Schema.Literal("docker"),
  container: Schema.String.pipe(Schema.pattern(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/)),
  /** A user of the container; its default user otherwise. */
  user: optional(Schema.String.pipe(Schema.pattern(/^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,127}$/))),
  cwd: optional(AbsolutePath)
})
export type DockerTarget = typeof DockerTarget.Type

export const Target = Schema.Union(LocalTarget, SshTarget, DockerTarget)
export type Target = typeof Target.Type

/** Letters, digits, dots, underscores and dashes; others become underscores. At most 40 characters. */
const sanitized = (name: string): string => name.replaceAll(/[^A-Za-z0-9._-]/g, "_").slice(0, 40) || "_"

/** The id of the `number`th shell of a process: `1_local`, `2_ssh_build@host:2222`, `3_docker_web` (seed 001). */
export const shellID = (number: number, target: Target): string => {
  switch (target.transport) {
    case "local":
      return `${number}_local`
    case "ssh": {
      const port = target.port === undefined || target.port === 22 ? "" : `:${target.port}`
      return `${number}_ssh_${sanitized(target.user)}@${sanitized(target.host)}${port}`
    }
    case "docker":
      return `${number}_docker_${sanitized(target.container)}`
  }
}
