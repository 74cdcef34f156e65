"""Does a store give disk space back after objects were removed?"""
