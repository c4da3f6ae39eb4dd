/** The whole runtime on one database, with the providers of the environment and the person at the terminal. */
import { Daybook } from "@daybook/core"
import { Catalog, Models } from "@daybook/models"
import { Layer } from "effect"
import * as PermissionPrompt from "./PermissionPrompt.ts"

export const parseModel = Catalog.parseModel

export const layer = (filename: string) =>
  Daybook.layer({ filename }).pipe(Layer.provideMerge(Layer.mergeAll(Models.layer, PermissionPrompt.layer)))
