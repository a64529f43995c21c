import { COMPONENTS } from "../../azjax/viz/js/main.js";
import { playground } from "./playground.js";

Object.assign(COMPONENTS, { playground });
