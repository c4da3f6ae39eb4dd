/** Runs exporters on real folders, and reads the files under a root. */
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { join } from "node:path"
import { Context, Effect, Layer } from "effect"
import { Exporter, type ExporterOptions } from "../../../packages/files/src/Exporter.ts"
import * as SqlSessionStore from "../../../packages/log/src/store/SqlSessionStore.ts"
import { SessionStore } from "../../../packages/log/src/store/SessionStore.ts"
import { logAt, temporaryFolder } from "../../support/Database.ts"

/** The log and the read models on a file. Two layers act as two processes' connections. */
export const storeAt = (filename: string) => SqlSessionStore.layer.pipe(Layer.provideMerge(logAt(filename)))

/** Runs with a store in a new folder, and the path of a root in it. */
export const withStore = <A, E, R>(use: (root: string, folder: string) => Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    return yield* Effect.provide(use(join(folder, "ctx"), folder), storeAt(join(folder, "store.db")))
  })

/** An exporter of the store in the context, until the scope closes. */
export const exporterAt = (options: ExporterOptions) =>
  Effect.map(Layer.build(Layer.fresh(Exporter.layer(options))), (context) => Context.get(context, Exporter))

/** Exports the store in the context to the root, once. */
export const exportAll = (options: ExporterOptions) =>
  Effect.scoped(Effect.flatMap(exporterAt(options), ({ catchUp }) => catchUp))

/** Every file and folder under the root except the exporter's own, with permissions and contents. */
export const tree = (root: string, { asides = true }: { readonly asides?: boolean } = {}): Record<string, string> => {
  const found: Record<string, string> = {}
  const visit = (folder: string) => {
    for (const name of readdirSync(join(root, folder)).toSorted()) {
      const path = folder === "" ? name : `${folder}/${name}`
      if (path === ".daybook" || (!asides && /\.aside\.\d+$/.test(name))) continue
      const stats = lstatSync(join(root, path))
      const mode = (stats.mode & 0o7777).toString(8)
      if (stats.isSymbolicLink()) found[path] = `link ${readlinkSync(join(root, path))}`
      else if (stats.isDirectory()) {
        found[path] = `folder ${mode}`
        visit(path)
      } else found[path] = `${mode} ${readFileSync(join(root, path), "latin1")}`
    }
  }
  visit("")
  return found
}

export { SessionStore }
