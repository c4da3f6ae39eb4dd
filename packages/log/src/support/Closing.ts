/**
 * Finalizers for code that runs in every turn. Effect's own carry the services and references of the fiber that adds them to the one
 * that closes the scope, which costs more than most finalizers; these run with those of the closing fiber.
 */
import { Effect, type Exit, Scope } from "effect"

/** Runs the finalizer when the scope closes. */
export const onClose = (finalizer: (exit: Exit.Exit<unknown, unknown>) => Effect.Effect<unknown>) =>
  Effect.flatMap(Effect.scope, (scope) => Scope.addFinalizerExit(scope, finalizer))

/** Acquires without interruption, and releases when the scope closes. */
export const acquireRelease = <A, E, R>(
  acquire: Effect.Effect<A, E, R>,
  release: (acquired: A) => Effect.Effect<unknown>
): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.uninterruptible(Effect.tap(acquire, (acquired) => onClose(() => release(acquired))))
