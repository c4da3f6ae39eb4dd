/**
 * The section `shell` of the configuration: what the operator, and no argument of an agent, decides about live shells.
 * Pure. Spec: CF-52, CF-53 in specs/config.md.
 */
import { Schema } from "effect"
import { boolean, counting, optional, shaped, someText, texts } from "@daybook/core/definition/Yaml"
import type { OperatorPolicy } from "@daybook/shell/policy/Policy"
import type { TransportSettings } from "@daybook/shell/transport/TransportSettings"
import { sizeOf, sizeRule } from "../support/Amounts.ts"
import { amountOf, amountOrNever, durationOrNever, present } from "./Written.ts"

/** Paths are absolute; absent settings have the defaults of `ShellSettings`. */
export interface ShellSection {
  /** Milliseconds; zero for never. */
  readonly idle?: number
  readonly limit?: number
  /** False: whole outputs are not kept. */
  readonly outputs?: false | { readonly folder?: string; readonly quota?: number }
  readonly policy?: OperatorPolicy
  readonly transports?: TransportSettings
}

const WrittenOutputs = Schema.Struct({
  enabled: optional(boolean),
  folder: optional(someText),
  max_size: amountOf(sizeOf, sizeRule)
}).pipe(shaped("a map of enabled, folder and max_size"))

const WrittenPolicy = Schema.Struct({
  allow: optional(texts),
  deny: optional(texts),
  deny_patterns: optional(texts),
  allow_dangerous: optional(boolean)
}).pipe(shaped("a map of allow, deny, deny_patterns and allow_dangerous"))

const WrittenSsh = Schema.Struct({
  keys: optional(someText),
  known_hosts: optional(texts),
  accept_new: optional(boolean)
}).pipe(shaped("a map of keys, known_hosts and accept_new"))

const WrittenDocker = Schema.Struct({ program: optional(someText), host: optional(someText) }).pipe(
  shaped("a map of program and host")
)

export const WrittenShell = Schema.Struct({
  idle: amountOrNever,
  limit: optional(counting),
  outputs: optional(WrittenOutputs),
  policy: optional(WrittenPolicy),
  ssh: optional(WrittenSsh),
  docker: optional(WrittenDocker)
}).pipe(shaped("a map"))

const outputsOf = (
  { enabled, folder, max_size: quota }: typeof WrittenOutputs.Type,
  absolute: (written: string) => string
) =>
  enabled === false
    ? (false as const)
    : present({
        folder: folder === undefined ? undefined : absolute(folder),
        quota: quota === undefined ? undefined : sizeOf(quota)
      })

const policyOf = ({
  allow_dangerous: allowDangerous,
  deny_patterns: denyPatterns,
  ...lists
}: typeof WrittenPolicy.Type): OperatorPolicy => ({ ...lists, ...present({ allowDangerous, denyPatterns }) })

const transportsOf = (
  { docker = {}, ssh = {} }: Pick<typeof WrittenShell.Type, "docker" | "ssh">,
  absolute: (written: string) => string
): TransportSettings =>
  present({
    keyFolder: ssh.keys === undefined ? undefined : absolute(ssh.keys),
    knownHosts: ssh.known_hosts?.map(absolute),
    acceptNew: ssh.accept_new,
    dockerProgram: docker.program,
    dockerHost: docker.host
  })

export const shellOf = (
  { idle, limit, outputs, policy, ...transports }: typeof WrittenShell.Type,
  absolute: (written: string) => string
): ShellSection =>
  present({
    idle: idle === undefined ? undefined : durationOrNever(idle),
    limit,
    outputs: outputs && outputsOf(outputs, absolute),
    policy: policy && policyOf(policy),
    transports: transportsOf(transports, absolute)
  })
