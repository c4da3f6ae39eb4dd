/** Chooses the transport of a target. Spec: SL-86 in specs/shell.md. */
import { Effect, type Scope } from "effect"
import type { InvalidOption, TransportFailed } from "../domain/ShellError.ts"
import type { Target } from "../domain/Target.ts"
import * as DockerTransport from "./DockerTransport.ts"
import type { Transport } from "./Program.ts"
import * as LocalTransport from "./LocalTransport.ts"
import * as SshTransport from "./SshTransport.ts"
import type { TransportSettings } from "./TransportSettings.ts"

export { TransportSettings } from "./TransportSettings.ts"

/** Opens the way to a target. The scope's end closes it. `local` is for local targets: the environment, and the sandbox. */
export const make = (
  target: Target,
  settings: TransportSettings = {},
  local: LocalTransport.LocalOptions = {}
): Effect.Effect<Transport, TransportFailed | InvalidOption, Scope.Scope> => {
  switch (target.transport) {
    case "local":
      return LocalTransport.make(target, local)
    case "ssh":
      return SshTransport.make(target, settings)
    case "docker":
      return DockerTransport.make(target, settings)
  }
}
