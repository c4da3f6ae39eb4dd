/**
 * What the operator, and nobody else, decides about transports: which keys and hosts are trusted, and how Docker is reached.
 * No argument of an agent changes them (AU-4). Spec: SL-86 in specs/shell.md.
 */
import { Schema } from "effect"
import { homedir } from "node:os"
import { join } from "node:path"
import { optional } from "@daybook/log/support/Optional"
import { AbsolutePath } from "../domain/Target.ts"

const Millis = Schema.Int.pipe(Schema.between(1, 3_600_000))

export const TransportSettings = Schema.Struct({
  /** The folder of private keys that a target may name. Without it, no target may name a key. */
  keyFolder: optional(AbsolutePath),
  /** Files of known hosts that are only read; those of the user and of the machine by default. */
  knownHosts: optional(Schema.Array(AbsolutePath)),
  /** Daybook's own file of known hosts, read too. Keys that `acceptNew` accepts are written there. */
  ownKnownHosts: optional(AbsolutePath),
  /** Trusts the key of a host that no file names, and remembers it. Needs `ownKnownHosts`. Off by default. */
  acceptNew: optional(Schema.Boolean),
  /** How long connecting and authentication may take, and Docker's answers; 20 s by default. */
  readyMillis: optional(Millis),
  /** The time between two questions to an SSH server whether it is there; 5 s by default. */
  keepaliveMillis: optional(Millis),
  /** So many questions without an answer mean that the connection is lost; 3 by default. */
  keepaliveCount: optional(Schema.Int.pipe(Schema.between(1, 100))),
  /** The Docker client; `docker` by default. */
  dockerProgram: optional(Schema.NonEmptyString),
  /** The daemon's address; `DOCKER_HOST` of this process by default, else the client's own. */
  dockerHost: optional(Schema.NonEmptyString)
})
export type TransportSettings = typeof TransportSettings.Type

export const defaults = {
  readyMillis: 20_000,
  keepaliveMillis: 5_000,
  keepaliveCount: 3,
  dockerProgram: "docker"
} as const

/** The user's and the machine's files of known hosts. */
export const systemKnownHosts = (): ReadonlyArray<string> => [
  join(homedir(), ".ssh", "known_hosts"),
  "/etc/ssh/ssh_known_hosts"
]
