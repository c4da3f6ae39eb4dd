/**
 * The working directory that a client names, inside the world of its agent. Stub.
 */
import { Effect, Schema } from "effect"

/** A working directory as the host sees it, and as the agent does. */
export interface ResolvedCwd {
  /** The canonical host folder. */
  readonly directory: string
  /** The canonical path below the agent's root: what is stored, shown and hashed. */
  readonly shown: string
}

/** Why a client's working directory is refused. */
export class CwdRefused extends Schema.TaggedError<CwdRefused>()("CwdRefused", {
  code: Schema.Literal("EINVAL", "EACCES", "ENOENT"),
  message: Schema.String
}) {}

/** The operator's file is not what it has to be. */
export class DefaultCwdUnusable extends Schema.TaggedError<DefaultCwdUnusable>()("DefaultCwdUnusable", {
  code: Schema.Literal("EIO"),
  /** Relative to the layout's root. */
  file: Schema.String,
  message: Schema.String
}) {}

export interface ResolveCwd {
  /** The host folder that is `/` for the agent. */
  readonly root: string
  readonly cwd: string
}

export const resolveCwd: (options: ResolveCwd) => Effect.Effect<ResolvedCwd, CwdRefused> = Effect.fn("Cwd.resolve")(
  function* () {
    return yield* new CwdRefused({ code: "ENOENT", message: "" })
  }
)

/** Fails when what was resolved no longer leads to the same folder. */
export const recheckCwd: (root: string, resolved: ResolvedCwd) => Effect.Effect<void, CwdRefused> = Effect.fn(
  "Cwd.recheck"
)(function* (root, resolved) {
  yield* resolveCwd({ root, cwd: resolved.shown })
})

/** The working directory of an agent's sends that name none: `agent/<name>.d/cwd` below the layout's root. */
export const agentDefaultCwd: (options: {
  readonly root: string
  readonly name: string
}) => Effect.Effect<string, DefaultCwdUnusable> = Effect.fn("Cwd.agentDefault")(function* (options) {
  return yield* new DefaultCwdUnusable({ code: "EIO", file: options.name, message: "" })
})
