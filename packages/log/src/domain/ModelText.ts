/** Shows a model to people. Pure. */
import type { ModelRef } from "./Values.ts"

/** `provider/model`, with `:variant` if it has one. */
export const modelText = ({ id, providerID, variant }: ModelRef): string =>
  `${providerID}/${id}${variant === undefined ? "" : `:${variant}`}`
