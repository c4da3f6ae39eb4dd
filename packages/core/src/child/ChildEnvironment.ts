/**
 * The environment of every process that the runtime starts: harmless variables, and what the configuration grants by
 * name. Keys of providers, clouds and registries are in this process's environment; nothing of it is inherited.
 * Spec: EN-1..EN-4 in specs/sandbox.md.
 */
import { Context, Layer } from "effect"

/** Who and where the user is, how text is shown, and where caches and certificates lie. */
const harmless: ReadonlyArray<string> = [
  "PATH HOME USER LOGNAME SHELL TMPDIR TZ TERM COLORTERM NO_COLOR LANG LANGUAGE",
  "LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE LC_IDENTIFICATION LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC",
  "LC_PAPER LC_TELEPHONE LC_TIME XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_STATE_HOME",
  "SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS"
].flatMap((line) => line.split(" "))

/** Further variables by name, as the configuration grants them. */
export interface EnvironmentGrants {
  /** To the commands of `bash`. */
  readonly bash?: ReadonlyArray<string>
}

/** The grants of the host; none by default. */
export class Granted extends Context.Reference<Granted>()("@daybook/core/EnvironmentGrants", {
  defaultValue: (): EnvironmentGrants => ({})
}) {}

/** The grants that a host gives. */
export const layer = (grants: EnvironmentGrants = {}): Layer.Layer<never> => Layer.succeed(Granted, grants)

/** A child's environment, out of this process's. Pure. */
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
