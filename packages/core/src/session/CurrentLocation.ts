/** The Location that a Location-scoped service serves. Its `directory` is canonical: absolute, without symbolic links. */
import { Context } from "effect"
import type { Location } from "./Schemas.ts"

export class CurrentLocation extends Context.Tag("@daybook/core/CurrentLocation")<CurrentLocation, Location>() {}
