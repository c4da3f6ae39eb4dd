/** The files of the page, as the package's build bundled them. Spec: IP-1 in specs/http.md. */
import * as FileSystem from "@effect/platform/FileSystem"
import { Effect, Schema } from "effect"
import { fileURLToPath } from "node:url"

export interface Assets {
  readonly script: string
  readonly style: string
}

/** The package was not built: it has no page. */
export class AssetsMissing extends Schema.TaggedError<AssetsMissing>("@daybook/inspector/AssetsMissing")(
  "AssetsMissing",
  { path: Schema.String }
) {
  override get message() {
    return `${this.path} cannot be read: build the package first`
  }
}

const read = (name: string) => {
  const path = fileURLToPath(new URL(`../dist/bundle/${name}`, import.meta.url))
  return Effect.mapError(
    Effect.flatMap(FileSystem.FileSystem, (files) => files.readFileString(path)),
    () => new AssetsMissing({ path })
  )
}

export const packaged: Effect.Effect<Assets, AssetsMissing, FileSystem.FileSystem> = Effect.all({
  script: read("page.js"),
  style: read("page.css")
})
