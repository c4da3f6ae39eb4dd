/** What a project's people allowed for good. Spec: PM-3. The SQL form is in `SqlPermissionStore.ts`. */
import { Context, Effect, Layer, Schema } from "effect"
import type { Approval } from "./Rule.ts"

/** Saved approvals could not be read or written. */
export class PermissionStoreError extends Schema.TaggedError<PermissionStoreError>(
  "@daybook/core/PermissionStoreError"
)("PermissionStoreError", { operation: Schema.String, cause: Schema.Defect }) {
  override get message() {
    return `saved approvals could not be used: ${this.operation} failed`
  }
}

/** Saved approvals, by project. */
export class PermissionStore extends Context.Tag("@daybook/core/PermissionStore")<
  PermissionStore,
  {
    /** The approvals of a project: the canonical directory of its Location. Oldest first. */
    readonly list: (project: string) => Effect.Effect<ReadonlyArray<Approval>, PermissionStoreError>
    /** Adds approvals; one that is there already stays as it is. */
    readonly save: (project: string, approvals: ReadonlyArray<Approval>) => Effect.Effect<void, PermissionStoreError>
  }
>() {}

/** Approvals that live as long as the process. */
export const layerMemory: Layer.Layer<PermissionStore> = Layer.sync(PermissionStore, () => {
  const projects = new Map<string, Map<string, Approval>>()
  return PermissionStore.of({
    list: (project) => Effect.sync(() => [...(projects.get(project)?.values() ?? [])]),
    save: (project, approvals) =>
      Effect.sync(() => {
        const known = projects.get(project) ?? new Map<string, Approval>()
        projects.set(project, known)
        for (const { permission, resource } of approvals) {
          const key = JSON.stringify([permission, resource])
          if (!known.has(key)) known.set(key, { permission, resource })
        }
      })
  })
})
