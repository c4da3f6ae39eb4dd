/**
 * Builds the environment of every process that the runtime starts: harmless variables, plus those that the
 * configuration grants by name. This process's environment holds keys of providers, clouds and registries; a child
 * inherits no such key. Spec: EN-1..EN-4 in specs/security.md.
 */
import { Context, Layer } from "effect"

/** The user, locale and terminal, and the locations of caches and certificates. */
const harmless: ReadonlyArray<string> = [
  "PATH HOME USER LOGNAME SHELL TMPDIR TZ TERM COLORTERM NO_COLOR LANG LANGUAGE",
  "LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE LC_IDENTIFICATION LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC",
  "LC_PAPER LC_TELEPHONE LC_TIME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME",
  "SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS"
].flatMap((line) => line.split(" "))

/** Additional variables, by name, that the configuration grants. */
export interface EnvironmentGrants {
  /** Granted to `bash` commands. */
  readonly bash?: ReadonlyArray<string>
}

/** The host's grants; none by default. */
export class Granted extends Context.Reference<Granted>()("@daybook/core/EnvironmentGrants", {
  defaultValue: (): EnvironmentGrants => ({})
}) {}

export const layer = (grants: EnvironmentGrants = {}): Layer.Layer<never> => Layer.succeed(Granted, grants)

/** Selects a child's environment from this process's. Pure. */
export const childEnvironment = (
  own: Readonly<Record<string, string | undefined>>,
  granted: ReadonlyArray<string> = []
): Record<string, string> =>
  Object.fromEntries(
    [...harmless, ...granted].flatMap((name) => {
      const value = Object.hasOwn(own, name) ? own[name] : undefined
      return value === undefined ? [] : [[name, value]]
    })
  )
