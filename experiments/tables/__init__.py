"""The papers' tables and figures, from their definitions in configs/tables to our figures beside the papers'."""
